"""The words of miniworld: twelve topics, what all topics share, and how words inflect.

Weights are positions: the k-th word of a slot has a share proportional to 1 / k (Zipf), so a slot
has a best guess that can be learnt.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

SING, PLUR = "Sing", "Plur"
PAST, PRESENT, FUTURE = "past", "present", "future"
FEMALE, MALE = "Fem", "Masc"


class Lex(NamedTuple):
    """One inflected word with its annotation (UD v2, Penn Treebank tags as XPOS)."""

    form: str
    lemma: str
    upos: str
    xpos: str
    feats: dict[str, str]


class Slot:
    """A distribution over the words that can fill a place.

    ``best`` is the likeliest word and ``chance`` its probability: what an oracle guesses, and how
    often it is right.
    """

    def __init__(self, words: list, weights: list[float] | None = None):
        weights = weights or [1 / rank for rank in range(1, len(words) + 1)]
        self.words, self.weights = list(words), list(weights)
        self.bounds = list(accumulate(weight / sum(weights) for weight in weights))[:-1]
        top = max(range(len(words)), key=self.weights.__getitem__)
        self.best, self.chance = words[top], weights[top] / sum(weights)
        self._parts: dict = {}

    def draw(self, uniform: float):
        """The word at ``uniform`` in [0, 1)."""
        return self.words[bisect(self.bounds, uniform)]

    def given(self, condition, value) -> Slot:
        """The slot once ``condition(word) == value`` is known."""
        key = (condition, value)
        if key not in self._parts:
            kept = [i for i, word in enumerate(self.words) if condition(word) == value]
            self._parts[key] = Slot([self.words[i] for i in kept], [self.weights[i] for i in kept])
        return self._parts[key]


def article(word: str) -> str:
    """``a`` or ``an``: what stands before a word. Spelling decides in this vocabulary."""
    return "an" if word[0] in "aeiou" else "a"


@dataclass(frozen=True)
class Topic:
    """A corner of the world. ``at`` is the preposition of its places."""

    name: str
    at: str
    places: Slot
    roles: Slot
    things: Slot
    looks: Slot
    parts: Slot
    tools: Slot
    deeds: Slot


def _topic(name: str, at: str, places: str, roles: str, *more: str) -> Topic:
    """The first role is three times as likely as the second."""
    return Topic(name, at, Slot(places.split()), Slot(roles.split(), [3, 1]),
                 *(Slot(words.split()) for words in more))


TOPICS = (
    _topic("kitchen", "in", "kitchen restaurant", "cook waiter", "plate cup apron",
           "copper empty greasy", "stove sink", "sponge towel", "wash dry"),
    _topic("farm", "at", "farm ranch", "farmer shepherd", "cow horse ox",
           "brown old woolly", "fence wagon", "brush bucket", "feed brush"),
    _topic("school", "in", "classroom school", "teacher student", "book pencil essay",
           "yellow easy thick", "desk blackboard", "ruler eraser", "copy mark"),
    _topic("harbor", "at", "harbor beach", "sailor captain", "boat net oar",
           "wooden orange salty", "rock dock", "hook pump", "pull tie"),
    _topic("hospital", "in", "hospital clinic", "doctor nurse", "bed bandage ambulance",
           "soft extra sterile", "curtain cabinet", "bottle ointment", "check clean"),
    _topic("station", "at", "station platform", "driver guard", "train ticket engine",
           "heavy express green", "track bench", "wrench flag", "inspect stop"),
    _topic("theater", "in", "theater hall", "actor singer", "costume light organ",
           "golden elegant velvet", "mirror seat", "ribbon lamp", "paint decorate"),
    _topic("workshop", "in", "workshop garage", "carpenter mechanic", "chair watch axle",
           "rusty iron round", "ladder crate", "saw hammer", "fix polish"),
    _topic("museum", "in", "museum gallery", "guide artist", "statue painting urn",
           "marble ancient famous", "pillar window", "camera lens", "study photograph"),
    _topic("market", "at", "market bakery", "merchant baker", "melon apple cake",
           "fresh organic sweet", "stall counter", "bag coin", "sell weigh"),
    _topic("stadium", "at", "stadium gym", "coach player", "ball medal arrow",
           "leather olympic light", "goal tent", "glove whistle", "catch lift"),
    _topic("garden", "in", "garden park", "gardener owner", "flower plant orchid",
           "tall exotic wild", "pond hedge", "shovel hose", "water plant"),
)

#: Names by gender; both genders are equally likely.
NAMES = {FEMALE: Slot("Anna Mary Laura Emma".split()),
         MALE: Slot("Tom Peter John David".split())}

#: What goes wrong, and what it is once it is put right.
PROBLEMS = Slot(["dirty", "wet", "cold", "weak"], [6, 2, 1, 1])
REMEDIES = {"dirty": "clean", "wet": "dry", "cold": "warm", "weak": "strong"}

#: Slots that are the same in every topic, by their name in the grammar.
VERB_SLOTS = {
    "MOVE": Slot(["go", "walk", "run"]),
    "VISIT": Slot(["visit", "enter", "reach"]),
    "WORK": Slot(["work", "wait", "sit", "stand"]),
    "MEET": Slot(["meet", "see", "find"]),
    "SEE": Slot(["see", "find", "notice"]),
    "LEARN": Slot(["see", "notice", "learn"]),
    "HAVE": Slot(["have", "need", "want"]),
    "LIKE": Slot(["like", "love", "want", "need"]),
    "ASK": Slot(["ask", "call"]),
    "BRING": Slot(["bring", "find", "take"]),
    "HELP": Slot(["help", "join", "follow"]),
    "WANT": Slot(["want", "try", "hope", "need"]),
    "WATCH": Slot(["watch", "follow", "help"]),
    "CARRY": Slot(["carry", "take", "bring", "move"]),
    "SMILE": Slot(["smile", "wave", "laugh"]),
    "THANK": Slot(["thank", "praise"]),
    "REST": Slot(["rest", "cook", "read"]),
}
ADJECTIVE_SLOTS = {
    "QUALITY": Slot(["nice", "old", "beautiful", "big", "ugly", "small"]),
    "TRAIT": Slot(["kind", "young", "clever", "eager"]),
    "SAD": Slot(["sad", "worried", "angry", "tired"]),
    "HAPPY": Slot(["happy", "glad", "proud"]),
}
ADVERB_SLOTS = {
    "ADVERB": Slot(["carefully", "quickly", "slowly", "quietly"]),
    "OFTEN": Slot(["often", "always", "sometimes"]),
    "VERY": Slot(["very", "quite", "really", "so"]),
    "FINALLY": Slot(["finally", "soon", "now"]),
}
NOUN_SLOTS = {
    "DAYTIME": Slot(["morning", "afternoon", "evening"]),
    "NIGHT": Slot(["evening", "night"]),
    "FRIEND": Slot(["friend", "brother", "sister", "mother"]),
}
PREPOSITION_SLOTS = {"NEAR": Slot(["near", "behind", "beside", "under"])}

#: Irregular forms: third person present, past, past participle, present participle.
IRREGULAR_VERBS = {
    "go": ("goes", "went", "gone", "going"), "run": ("runs", "ran", "run", "running"),
    "sit": ("sits", "sat", "sat", "sitting"), "meet": ("meets", "met", "met", "meeting"),
    "see": ("sees", "saw", "seen", "seeing"), "find": ("finds", "found", "found", "finding"),
    "have": ("has", "had", "had", "having"), "read": ("reads", "read", "read", "reading"),
    "feed": ("feeds", "fed", "fed", "feeding"), "sell": ("sells", "sold", "sold", "selling"),
    "catch": ("catches", "caught", "caught", "catching"),
    "bring": ("brings", "brought", "brought", "bringing"),
    "take": ("takes", "took", "taken", "taking"),
    "leave": ("leaves", "left", "left", "leaving"), "tie": ("ties", "tied", "tied", "tying"),
    "stand": ("stands", "stood", "stood", "standing"),
    "stop": ("stops", "stopped", "stopped", "stopping"),
}
IRREGULAR_PLURALS = {"ox": "oxen"}
#: Tenses of "be" by number.
BE = {(PAST, SING): "was", (PAST, PLUR): "were", (PRESENT, SING): "is", (PRESENT, PLUR): "are"}


def _with_s(word: str) -> str:
    if word.endswith(("s", "sh", "ch", "x", "z")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def _with_ed(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + "ed"


def _verb_forms(verb: str) -> tuple[str, str, str, str]:
    if verb in IRREGULAR_VERBS:
        return IRREGULAR_VERBS[verb]
    past = _with_ed(verb)
    return _with_s(verb), past, past, (verb[:-1] if verb.endswith("e") else verb) + "ing"


@lru_cache(maxsize=None)
def noun(lemma: str, number: str = SING) -> Lex:
    if number == SING:
        return Lex(lemma, lemma, "NOUN", "NN", {"Number": SING})
    return Lex(IRREGULAR_PLURALS.get(lemma) or _with_s(lemma), lemma, "NOUN", "NNS",
               {"Number": PLUR})


@lru_cache(maxsize=None)
def adjective(lemma: str) -> Lex:
    return Lex(lemma, lemma, "ADJ", "JJ", {"Degree": "Pos"})


@lru_cache(maxsize=None)
def finite(verb: str, tense: str, number: str, upos: str = "VERB") -> Lex:
    """A finite verb of the third person."""
    feats = {"Mood": "Ind", "Number": number, "Person": "3",
             "Tense": "Past" if tense == PAST else "Pres", "VerbForm": "Fin"}
    xpos = "VBD" if tense == PAST else "VBZ" if number == SING else "VBP"
    if verb == "be":
        return Lex(BE[tense, number], verb, upos, xpos, feats)
    third, past, _, _ = _verb_forms(verb)
    form = past if tense == PAST else third if number == SING else verb
    return Lex(form, verb, upos, xpos, feats)


@lru_cache(maxsize=None)
def infinitive(verb: str, upos: str = "VERB") -> Lex:
    return Lex(verb, verb, upos, "VB", {"VerbForm": "Inf"})


@lru_cache(maxsize=None)
def passive(verb: str) -> Lex:
    return Lex(_verb_forms(verb)[2], verb, "VERB", "VBN",
               {"Tense": "Past", "VerbForm": "Part", "Voice": "Pass"})


@lru_cache(maxsize=None)
def progressive(verb: str) -> Lex:
    return Lex(_verb_forms(verb)[3], verb, "VERB", "VBG", {"Tense": "Pres", "VerbForm": "Part"})


@lru_cache(maxsize=None)
def name(form: str) -> Lex:
    return Lex(form, form, "PROPN", "NNP", {"Number": SING})


def _pronoun(form: str, lemma: str, case: str, number: str, gender: str = "") -> Lex:
    feats = {"Case": case, "Gender": gender, "Number": number, "Person": "3", "PronType": "Prs"}
    if case == "Gen":
        feats = {**feats, "Poss": "Yes"}
    return Lex(form, lemma, "PRON", "PRP$" if case == "Gen" else "PRP",
               {key: value for key, value in feats.items() if value})


#: Pronouns by (gender or number of what they stand for, case).
PRONOUNS = {
    (FEMALE, "Nom"): _pronoun("she", "she", "Nom", SING, FEMALE),
    (FEMALE, "Acc"): _pronoun("her", "she", "Acc", SING, FEMALE),
    (FEMALE, "Gen"): _pronoun("her", "her", "Gen", SING, FEMALE),
    (MALE, "Nom"): _pronoun("he", "he", "Nom", SING, MALE),
    (MALE, "Acc"): _pronoun("him", "he", "Acc", SING, MALE),
    (MALE, "Gen"): _pronoun("his", "his", "Gen", SING, MALE),
    (SING, "Nom"): _pronoun("it", "it", "Nom", SING, "Neut"),
    (SING, "Acc"): _pronoun("it", "it", "Acc", SING, "Neut"),
    (PLUR, "Nom"): _pronoun("they", "they", "Nom", PLUR),
    (PLUR, "Acc"): _pronoun("them", "they", "Acc", PLUR),
}

_INDEFINITE = {"Definite": "Ind", "PronType": "Art"}
THE = Lex("the", "the", "DET", "DT", {"Definite": "Def", "PronType": "Art"})
A = {form: Lex(form, "a", "DET", "DT", _INDEFINITE) for form in ("a", "an")}
#: Definite determiners by number: mostly the article, sometimes the demonstrative.
DEFINITE = {
    SING: Slot([THE, Lex("this", "this", "DET", "DT", {"Number": SING, "PronType": "Dem"})],
               [3, 1]),
    PLUR: Slot([THE, Lex("these", "this", "DET", "DT", {"Number": PLUR, "PronType": "Dem"})],
               [3, 1]),
}
SOME = Lex("some", "some", "DET", "DT", {"PronType": "Ind"})
_CARDINAL = {"NumForm": "Word", "NumType": "Card"}
#: Whether a part of the place is spoken of as known.
KNOWN = Slot([True, False], [2, 1])
#: What introduces several things.
SEVERAL = Slot([Lex("two", "two", "NUM", "CD", _CARDINAL),
                SOME,
                Lex("three", "three", "NUM", "CD", _CARDINAL)])

#: Connectives of the first action of a document and of the others.
NEXT = (Slot(["first"]), Slot(["then", "next", "later"]))


def _literal(text: str, upos: str, xpos: str, **feats: str) -> dict[str, Lex]:
    return {form: Lex(form, form, upos, xpos, feats) for form in text.split()}


#: Words that stand in the grammar as themselves.
LITERALS: dict[str, Lex] = {
    "the": THE,
    **_literal(".", "PUNCT", "."), **_literal("? !", "PUNCT", "."), **_literal(",", "PUNCT", ","),
    **_literal("in at to with for by", "ADP", "IN"),
    **_literal("and but", "CCONJ", "CC"), **_literal("because", "SCONJ", "IN"),
    **_literal("there", "PRON", "EX"), **_literal("again together home suddenly", "ADV", "RB"),
    **_literal("why how", "ADV", "WRB", PronType="Int"), **_literal("so", "ADV", "RB"),
    **_literal("first", "ADV", "RB", NumForm="Word", NumType="Ord"),
    **_literal("then", "ADV", "RB", PronType="Dem"), **_literal("next later", "ADV", "RB"),
    **_literal("every", "DET", "DT", PronType="Tot"),
    **_literal("one", "NUM", "CD", NumForm="Word", NumType="Card"),
    **_literal("yesterday today tomorrow", "NOUN", "NN", Number=SING),
    **{word: Lex(word, word, "ADV", "RB", {})
       for slot in ADVERB_SLOTS.values() for word in slot.words},
    **{word: Lex(word, word, "ADP", "IN", {})
       for slot in PREPOSITION_SLOTS.values() for word in slot.words},
    "this": Lex("this", "this", "DET", "DT", {"Number": SING, "PronType": "Dem"}),
    "next/adj": Lex("next", "next", "ADJ", "JJ", {"Degree": "Pos"}),
    "to/part": Lex("to", "to", "PART", "TO", {}),
    "that/mark": Lex("that", "that", "SCONJ", "IN", {}),
    "that/pron": Lex("that", "that", "PRON", "WDT", {"PronType": "Rel"}),
    "home/noun": Lex("home", "home", "NOUN", "NN", {"Number": SING}),
    "will": Lex("will", "will", "AUX", "MD", {"VerbForm": "Fin"}),
}
