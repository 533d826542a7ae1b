"""What flows, computed for the page's text and kept for a while."""

from __future__ import annotations

from bertscope.errors import BertScopeError
from bertscope.ui import loaders
from bertscope.ui.attention import Look, reading


def by_pair(look: Look) -> bool:
    return bool(look.pair) and (look.model.has_nsp_head or look.model.has_sop_head)


def where_is(look: Look) -> tuple:
    return look.chosen.path, loaders.stamp(look.chosen.path), look.text, look.pair


def carried(look: Look):
    """``NormWeighted`` of the text."""
    from bertscope.analysis.attention_flow import norm_weighted

    return reading.kept(("carried", *where_is(look)), lambda: norm_weighted(look.model, look.encoded))


def gradients(look: Look, place: int | None):
    """``Gradients`` of the masked piece's prediction, or (no place) of the pair's."""
    from bertscope.analysis.attention_flow import attention_gradients, attention_gradients_of_pair

    if place is None:
        return reading.kept(("gradients", *where_is(look)),
                            lambda: attention_gradients_of_pair(look.model, look.encoded))
    if place >= len(look.encoded) or look.encoded.special[place]:
        raise BertScopeError("It cuts the text into other pieces, so this place is another one.")
    target = target_of(look, place)
    return reading.kept(("gradients", *where_is(look), place), lambda: attention_gradients(
        look.model, look.encoded, [place], place, target))


def target_of(look: Look, place: int) -> int:
    """The piece whose prediction is asked about: the one that was there, else the best guess."""
    from bertscope.analysis.predictions import predict

    target = int(look.encoded.input_ids[place])
    if target == look.model.tokenizer.mask_token_id:  # nobody knows what was there
        return predict(look.model, look.encoded, [place], 1)[0].candidates[0].id
    return target
