"""miniworld: English-looking documents from a small probabilistic grammar, with exact gold.

A document tells one event in one of twelve corners of the world (a kitchen, a farm, a harbor ...):
somebody named arrives, meets somebody, finds something, something is wrong with it, it is put
right, they part. It has one tense, persistent entities (a hero, a helper, a thing or several, a
place, a tool), agreement across phrases and relative clauses that contain a noun of the other
number, and words of two parts of speech (*watch*, *saw*, *clean*, *light*, *plant* ...).

Every word is annotated as in Universal Dependencies v2, and in MISC with

``Entity``   the entity, by a number within the document, on the head of every mention.
``Choice``   the generator's choice that decided the form, by a number within the document. Words
             that one choice decided share it: the hero's name, the pronouns of the hero's gender,
             the thing, its attribute, the helper, the place, the tool, the problem with its remedy.
``Oracle``   the probability that the best possible guess is right, knowing the grammar and all
             other words of the document.
``Alone``    the same where every other word of the same choice is hidden.

**What the oracle knows.** Topic, tense and the pattern of each sentence (which slots it has), but
no slot's filling. Slots are independent given these, except for what agreement shows, so the
chance of the likeliest filling, among those that fit the other words, is the exact posterior: a
noun after *an* begins with a vowel, a noun's number is known where its verb or determiner shows
it, *was* is certain beside its subject. It is an upper bound for any reader of a masked window,
because it errs on one side only: the pattern, the position in the story and, for pronouns, the
hero's gender count as known even where the window hides what tells them, and what another masked
word would show counts as shown.

Everything is a function of (seed, index): any document can be written without the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from bertscope.corpus.conllu import Sentence, Word
from bertscope.corpus.miniworld.derivation import Derivation, Token, Uniforms
from bertscope.corpus.miniworld.lexicon import TOPICS, noun
from bertscope.errors import BertScopeError

#: Raise it when the text of any (seed, index) changes.
VERSION = "5"
#: Documents of the built-in corpus: about 2.3 million words.
DEFAULT_DOCUMENTS = 20_000
#: The names of all topics.
TOPIC_NAMES = tuple(topic.name for topic in TOPICS)


@dataclass(frozen=True, slots=True)
class GoldDocument:
    """A document with its annotation; what is true of all of it stands in the fields.

    ``tense`` is past, present or future; ``gender`` (Fem, Masc) is the hero's, ``number``
    (Sing, Plur) the thing's; ``steps`` names the step of the story of each sentence.
    """

    id: str
    topic: str
    title: str
    tense: str
    hero: str
    gender: str
    thing: str
    number: str
    steps: list[str]
    sentences: list[Sentence]

    @property
    def texts(self) -> list[str]:
        """The sentences as plain text."""
        return [sentence.text for sentence in self.sentences]


def document(index: int, seed: int = 0) -> GoldDocument:
    """Document ``index`` of the world with this seed.

    Raises:
        BertScopeError: a number is negative.
    """
    if index < 0 or seed < 0:
        raise BertScopeError("A miniworld document needs an index and a seed of 0 or more.")
    derivation = Derivation(Uniforms(seed, index))
    cast = derivation.cast
    name = f"miniworld-{seed}-{index}"
    title = f"{cast.hero} and the {cast.problem} {noun(cast.thing, cast.number).form}"
    sentences = []
    for number, (step, tokens) in enumerate(derivation.sentences, 1):
        head = {"newdoc id": name, "title": title} if number == 1 else {}
        metadata = {**head, "sent_id": f"{name}-{number}", "topic": cast.topic.name, "step": step,
                    "text": _text(tokens)}
        sentences.append(Sentence(_words(tokens), metadata, name))
    return GoldDocument(name, cast.topic.name, title, cast.tense, cast.hero, cast.gender,
                        cast.thing, cast.number, [step for step, _ in derivation.sentences],
                        sentences)


def generate(documents: int = DEFAULT_DOCUMENTS, seed: int = 0) -> Iterator[GoldDocument]:
    """Documents 0 to ``documents - 1``."""
    return (document(index, seed) for index in range(documents))


def gold_sentences(documents: int, seed: int = 0) -> list[Sentence]:
    """The sentences of the first documents, ready for ``write_conllu`` and for probing."""
    return [sentence for made in generate(documents, seed) for sentence in made.sentences]


def _text(tokens: list[Token]) -> str:
    """No space before punctuation."""
    return "".join(token.lex.form if token.lex.upos == "PUNCT" else " " + token.lex.form
                   for token in tokens)[1:]


def _words(tokens: list[Token]) -> list[Word]:
    words = []
    last = len(tokens) - 1
    for place, (lex, head, relation, entity, choice, oracle, _, alone, _) in enumerate(tokens):
        misc = {"Choice": str(choice), "Oracle": _number(oracle), "Alone": _number(alone)}
        if entity:
            misc["Entity"] = str(entity)
        if place < last and tokens[place + 1].lex.upos == "PUNCT":
            misc["SpaceAfter"] = "No"
        form, lemma, upos, xpos, feats = lex
        words.append(Word(form, lemma, upos, xpos, dict(feats), head, relation, misc))
    return words


@lru_cache(maxsize=None)
def _number(probability: float) -> str:
    return f"{probability:.6g}"
