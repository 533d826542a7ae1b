"""From a directory or a hub name to a model that can be looked into."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import safe_open
from transformers import (
    AlbertForPreTraining,
    AutoConfig,
    AutoModelForMaskedLM,
    BertForMaskedLM,
    BertForPreTraining,
    BertLMHeadModel,
    ElectraForPreTraining,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING
from transformers.utils import logging as transformers_logging

from bertscope.analysis.encoding import TextEncoder
from bertscope.durable import damage
from bertscope.errors import BertScopeError

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

transformers_logging.disable_progress_bar()  # "Loading weights" for a model of a second

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_HUB_FILES = ["*.json", "*.txt", "*.model", "model*.safetensors"]
#: transformers builds a model under a default device of the whole process: two threads that open
#: checkpoints at once would get each other's.
_ONE_AT_A_TIME = threading.Lock()
#: What a class's head for pairs is called, and where its tensors are.
_PAIR_HEADS = {BertForPreTraining: ("nsp", "cls.seq_relationship."),
               AlbertForPreTraining: ("sop", "sop_classifier.")}
_HUB_TIMEOUT = 5.0  # seconds until a silent network counts as none


@dataclass(frozen=True)
class LoadedModel:
    """An encoder with its tokenizer. Shared between threads and pages: never change it."""

    path: str
    model: PreTrainedModel               # eager attention, float32, eval()
    tokenizer: PreTrainedTokenizerBase
    fingerprint: str                     # SHA-256 of the weights, hexadecimal
    num_layers: int                      # L, without the embeddings
    num_heads: int                       # A; 0 for an architecture without attention
    hidden_size: int                     # H
    max_length: int                      # pieces at most, special tokens included
    has_mlm_head: bool
    has_nsp_head: bool                   # BERT's ``cls.seq_relationship``, whatever it was taught
    has_sop_head: bool                   # ALBERT's ``sop_classifier``
    has_rtd_head: bool                   # ELECTRA's discriminator: which pieces were replaced
    family: str                          # config.model_type
    device: str
    parameters: int                      # each shared tensor once
    missing: tuple[str, ...]             # tensors that the file lacks: heads that are left out
    unexpected: tuple[str, ...]          # tensors of the file that nothing here reads
    untrained: bool                      # every normalisation still as it is initialised
    text_encoder: TextEncoder = field(repr=False, compare=False)


def load(path_or_name: str | Path, device: str | None = None) -> LoadedModel:
    """Open any encoder of the BERT family: one of our checkpoints, any directory, a hub name.

    BERT models keep whichever of their heads the file holds (MLM, NSP), ALBERT models too (MLM,
    SOP). Other families that transformers can load for masked language modelling (RoBERTa, ELECTRA
    generators, DistilBERT, DeBERTa, ...) keep their MLM head. A causal BERT keeps its head for the next piece. A head that is not in the file, and which
    transformers would initialise at random, counts as absent. Attention is computed eagerly, since
    only then the weights can be read. Safetensors only; no code of the checkpoint is run.

    Args:
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...; a GPU if there is one by default.

    Raises:
        BertScopeError: there's nothing of this name, it's damaged or incomplete, or another kind
            of model. The sentence says which.
    """
    folder = _locate(path_or_name)
    config = _config(folder)
    if file := damage(folder):
        raise BertScopeError(f"The checkpoint {folder} is damaged: {file} is missing or changed.")
    weights = _weight_files(folder)
    names = _tensor_names(folder, weights)
    tokenizer = _tokenizer(folder)
    model, has_mlm_head, pair_head, info = _model(folder, config, names)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    model = model.to(device).eval().requires_grad_(False)
    max_length = _max_length(model, tokenizer)
    return LoadedModel(
        path=str(path_or_name),
        model=model,
        tokenizer=tokenizer,
        fingerprint=_fingerprint(weights),
        num_layers=config.num_hidden_layers,
        num_heads=getattr(config, "num_attention_heads", None) or 0,
        hidden_size=config.hidden_size,
        max_length=max_length,
        has_mlm_head=has_mlm_head,
        has_nsp_head=pair_head == "nsp",
        has_sop_head=pair_head == "sop",
        has_rtd_head=isinstance(model, ElectraForPreTraining),
        family=config.model_type,
        device=device,
        parameters=sum(p.numel() for p in model.parameters()),
        missing=tuple(sorted(info["missing_keys"])),
        unexpected=tuple(sorted(info["unexpected_keys"])),
        untrained=_untrained(model),
        text_encoder=TextEncoder(
            tokenizer, max_length, vocab_size=config.vocab_size,
            has_segments=(getattr(config, "type_vocab_size", 0) or 0) > 1),
    )


# -- where it is ------------------------------------------------------------------------------


def _locate(path_or_name: str | Path) -> Path:
    path = Path(path_or_name).expanduser()
    name = str(path_or_name)
    if name and path.is_dir():
        return path
    if path.is_file():
        raise BertScopeError(f"{name} is a file; name the folder of the checkpoint.")
    if isinstance(path_or_name, Path) or not _HUB_NAME.fullmatch(name) or name[0] in ".-":
        raise BertScopeError(f"There is no checkpoint folder called {name!r}.")
    return _download(name)


def _download(name: str) -> Path:
    """The model called ``name`` on the Hugging Face hub, or in the hub's cache on this machine."""
    from huggingface_hub import errors, snapshot_download

    try:
        # Without a network this falls back to the cache by itself.
        return Path(snapshot_download(name, allow_patterns=_HUB_FILES, etag_timeout=_HUB_TIMEOUT))
    except (errors.GatedRepoError, errors.RepositoryNotFoundError):
        raise BertScopeError(f"There is no run and no folder called {name!r} here, and no public model of "
                             "that name on the Hugging Face hub.") from None
    except errors.LocalEntryNotFoundError:
        raise BertScopeError(f"There is no run and no folder called {name!r} here, and the Hugging Face hub "
                             "cannot be reached to look for it there.") from None
    except Exception as error:  # proxies, disks, broken downloads
        raise BertScopeError(f"The model {name!r} cannot be fetched from the Hugging Face hub: "
                             f"{_reason(error)}") from error


# -- what is in it ----------------------------------------------------------------------------


def _config(folder: Path) -> PretrainedConfig:
    if not (folder / "config.json").is_file():
        raise BertScopeError(f"{folder} has no config.json: it is not the folder of a model.")
    try:
        with _quiet():
            config = AutoConfig.from_pretrained(str(folder), local_files_only=True,
                                                trust_remote_code=False)
    except Exception as error:  # whatever a stranger's file provokes
        raise BertScopeError(f"The config.json of {folder} cannot be read: {_reason(error)}"
                             ) from error
    causal = getattr(config, "is_decoder", False) and config.model_type != "bert"
    if config.is_encoder_decoder or causal or type(config) not in MODEL_FOR_MASKED_LM_MAPPING:
        raise BertScopeError(f"{folder} is a {config.model_type} model; BertScope looks into "
                             "encoders of the BERT family only.")
    return config


def _weight_files(folder: Path) -> list[Path]:
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            parts = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
        except (ValueError, KeyError, AttributeError, TypeError):
            raise BertScopeError(f"{index} is damaged.") from None
        for part in parts:
            if Path(part).name != part or not (folder / part).is_file():
                raise BertScopeError(f"{folder} lacks a part of its weights, {part}.")
        return [folder / part for part in parts]
    if any(folder.glob("pytorch_model*.bin")):
        raise BertScopeError(f"{folder} has its weights as a pickle (pytorch_model.bin) only, "
                             "which could run code when opened; convert it to model.safetensors.")
    raise BertScopeError(f"{folder} has no model.safetensors.")


def _tensor_names(folder: Path, weights: list[Path]) -> set[str]:
    """The names in the files' headers; a file that was cut off is found out here."""
    names: set[str] = set()
    for file in weights:
        try:
            with safe_open(file, framework="pt") as opened:
                names.update(opened.keys())
        except Exception as error:  # SafetensorError, OSError
            raise BertScopeError(f"{folder / file.name} is damaged or incomplete: "
                                 f"{_reason(error)}") from None
    return names


def _tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    from bertscope.corpus.tokenizer import open_tokenizer

    with _quiet():
        return open_tokenizer(folder)


def _model(folder: Path, config: PretrainedConfig, names: set[str],
           ) -> tuple[PreTrainedModel, bool, str | None, dict]:
    """The model with the heads that its file has; whether it has an MLM head; its pair head,
    ``"nsp"``, ``"sop"`` or None; what transformers says of the loading."""
    if config.model_type == "bert" and config.is_decoder:
        kind = BertLMHeadModel
    elif config.model_type == "bert":
        kind = BertForPreTraining if any("seq_relationship" in n for n in names) \
            else BertForMaskedLM
    elif config.model_type == "albert" and any("sop_classifier" in n for n in names):
        kind = AlbertForPreTraining
    elif config.model_type == "electra" and any("discriminator_predictions" in n for n in names):
        kind = ElectraForPreTraining
    else:
        kind = AutoModelForMaskedLM
    try:
        with _ONE_AT_A_TIME, _quiet():
            model, info = kind.from_pretrained(
                str(folder), config=config, attn_implementation="eager", dtype=torch.float32,
                use_safetensors=True, trust_remote_code=False, local_files_only=True,
                output_loading_info=True)
    except Exception as error:
        reason = "they do not fit its config.json" if "mismatch" in str(error) else _reason(error)
        raise BertScopeError(f"The weights of {folder} cannot be loaded: {reason}") from error
    body = model.base_model_prefix + "."
    missing = {name for name in info["missing_keys"]}
    lost = sorted(n for n in missing if n.startswith(body) and ".pooler." not in n)
    if lost:
        raise BertScopeError(f"The weights of {folder} are incomplete: {len(lost)} tensors of the "
                             f"encoder are missing, such as {lost[0]}.")
    pair_head, part = _PAIR_HEADS.get(type(model), (None, body))
    if any(n.startswith((part, body + "pooler.")) for n in missing):
        pair_head = None
    has_lm = not any(not n.startswith((body, part)) for n in missing)
    has_mlm = has_lm and kind is not ElectraForPreTraining and not _is_causal(config)
    if not has_lm and not pair_head:
        model = model.base_model  # rather no head than one of random numbers
    return model, has_mlm, pair_head, info


def _untrained(model: PreTrainedModel) -> bool:
    """Whether no normalisation has moved from gain 1 and shift 0: one step of training moves all."""
    norms = [m for m in model.modules() if isinstance(m, torch.nn.LayerNorm) and m.bias is not None]
    return bool(norms) and all((m.weight == 1).all() and (m.bias == 0).all() for m in norms)


def _is_causal(config: PretrainedConfig) -> bool:
    """Whether each place sees only what stands left of it: no model for filling masks."""
    return bool(getattr(config, "is_decoder", False))


def _max_length(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Pieces at most: as many as there are position embeddings to use, or the tokenizer's limit."""
    most = getattr(model.config, "max_position_embeddings", None) or 512
    table = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
    if getattr(table, "padding_idx", None) is not None:
        most -= table.padding_idx + 1  # RoBERTa counts positions from padding_idx + 1
    return min(most, tokenizer.model_max_length or most)


# -- identity ---------------------------------------------------------------------------------


def weights_fingerprint(path_or_name: str | Path) -> str:
    """``LoadedModel.fingerprint`` without opening the model.

    Raises:
        BertScopeError: there is nothing of this name, or it has no safetensors.
    """
    return _fingerprint(_weight_files(_locate(path_or_name)))


def _fingerprint(weights: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in weights:
        found = file.stat()
        digest.update(bytes.fromhex(_file_digest(str(file.absolute()), found.st_size,
                                                 found.st_mtime_ns)))
    return digest.hexdigest()


@lru_cache(maxsize=4096)
def _file_digest(path: str, size: int, mtime_ns: int) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


# -- helpers ----------------------------------------------------------------------------------


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' reports on what was loaded: we look at them ourselves."""
    before = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(before)


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip()[:300]
