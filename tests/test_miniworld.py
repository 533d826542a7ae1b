"""miniworld: the text, its gold annotation, and above all its oracle."""

import math
from collections import Counter, defaultdict

import pytest

from bertscope.corpus.conllu import read_conllu, write_conllu
from bertscope.corpus.miniworld import TOPIC_NAMES, document, generate, gold_sentences
from bertscope.corpus.miniworld.derivation import Derivation, Uniforms
from bertscope.errors import BertScopeError

DOCUMENTS = 1500


@pytest.fixture(scope="module")
def docs():
    return list(generate(DOCUMENTS))


@pytest.fixture(scope="module")
def sentences(docs):
    return [sentence for made in docs for sentence in made.sentences]


@pytest.fixture(scope="module")
def derivations():
    return [Derivation(Uniforms(1, index)) for index in range(DOCUMENTS)]


# ---- the text


def test_any_document_can_be_written_alone(docs):
    assert document(1234) == docs[1234]
    assert document(3, seed=7) == list(generate(4, seed=7))[3] != docs[3]
    assert gold_sentences(2) == docs[0].sentences + docs[1].sentences
    with pytest.raises(BertScopeError):
        document(-1)


def test_size_of_the_world(docs, sentences):
    words = {word.form.lower() for sentence in sentences for word in sentence.words}
    assert 300 <= len(words) <= 600
    assert len(TOPIC_NAMES) >= 12 and {made.topic for made in docs} == set(TOPIC_NAMES)
    assert {made.tense for made in docs} == {"past", "present", "future"}
    assert all(8 <= len(made.sentences) <= 14 for made in docs)
    assert all(5 <= len(sentence.words) <= 14 for sentence in sentences)
    assert {sentence.text[-1] for sentence in sentences} == set(".?!")
    texts = Counter(sentence.text for sentence in sentences)
    assert len(texts) > 0.9 * len(sentences)


def test_words_belong_to_their_topics(docs):
    """A segment of three sentences can be told by its topic's own words."""
    homes = defaultdict(Counter)
    for made in docs:
        for sentence in made.sentences:
            for word in sentence.words:
                homes[word.form][made.topic] += 1
    own = {form for form, topics in homes.items() if len(topics) == 1 and topics.total() > 5}
    segments = [made.sentences[i: i + 3] for made in docs for i in range(len(made.sentences) - 2)]
    counts = [sum(word.form in own for s in segment for word in s.words) for segment in segments]
    assert sum(count >= 2 for count in counts) > 0.97 * len(counts)


def test_text_is_tokenised_into_exactly_the_annotated_words(sentences):
    from tokenizers.pre_tokenizers import BertPreTokenizer

    split = BertPreTokenizer().pre_tokenize_str
    for sentence in sentences:
        assert [piece for piece, _ in split(sentence.text)] == [w.form for w in sentence.words]
        assert sentence.text == sentence.metadata["text"]


def test_some_words_are_ambiguous(sentences):
    tags = defaultdict(set)
    for sentence in sentences:
        for word in sentence.words:
            tags[word.form].add((word.upos, word.feats.get("VerbForm"), word.feats.get("Poss")))
    for form in ("watch", "watches", "saw", "light", "plants", "cook", "clean", "dry", "her"):
        assert len(tags[form]) > 1, form


def test_story_goes_forward(docs):
    order = "arrive meet find describe problem act result close home".split()
    for made in docs:
        places = [order.index(step) for step in made.steps]
        assert places == sorted(places)


# ---- the annotation


def test_trees(sentences):
    for sentence in sentences:
        heads = [word.head for word in sentence.words]
        assert heads.count(0) == 1
        for place, word in enumerate(sentence.words, 1):
            assert (word.head == 0) == (word.deprel == "root")
            seen = set()
            while place:
                assert place not in seen, sentence.text
                seen.add(place)
                place = heads[place - 1]


def subjects(sentence):
    """(subject, finite verb) of every clause."""
    words = sentence.words
    for place, word in enumerate(words, 1):
        if word.feats.get("VerbForm") != "Fin" or word.form == "will":
            continue
        clause = word.head if word.deprel in ("cop", "aux", "aux:pass") else place
        while True:
            found = [w for w in words if w.head == clause and w.deprel.startswith("nsubj")]
            if found:
                break
            assert words[clause - 1].deprel == "conj"
            clause = words[clause - 1].head
        yield found[0], word


def test_verbs_agree_with_their_subjects(sentences):
    attracted = 0
    for sentence in sentences:
        for subject, verb in subjects(sentence):
            place = 1 + next(i for i, w in enumerate(sentence.words) if w is subject)
            if subject.form == "that":
                subject = sentence.words[sentence.words[subject.head - 1].head - 1]
            joined = any(w.deprel == "conj" and w.head == place for w in sentence.words)
            number = "Plur" if joined else subject.feats["Number"]
            assert verb.feats["Number"] == number, sentence.text
            if verb.form in ("is", "are", "was", "were"):
                assert (verb.form in ("are", "were")) == (number == "Plur")
                nouns = [w for w in sentence.words[: sentence.words.index(verb)]
                         if w.upos == "NOUN"]
                attracted += bool(nouns) and nouns[-1].feats["Number"] != number and not joined
    assert attracted > 0.02 * len(sentences)


def test_articles_and_determiners(sentences):
    for sentence in sentences:
        words = sentence.words
        for word, after in zip(words, words[1:]):
            if word.form in ("a", "an"):
                assert (word.form == "an") == (after.form[0] in "aeiou"), sentence.text
            if word.upos in ("DET", "NUM") and word.form != "the":
                number = "Plur" if word.form in ("these", "some", "two", "three") else "Sing"
                assert words[word.head - 1].feats["Number"] == number, sentence.text


def test_features_are_of_universal_dependencies(sentences):
    needed = {"NOUN": {"Number"}, "PROPN": {"Number"}, "ADJ": {"Degree"},
              "PRON": set(), "VERB": {"VerbForm"}, "AUX": {"VerbForm"}}
    allowed = {"ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "NOUN", "NUM", "PART", "PRON", "PROPN",
               "PUNCT", "SCONJ", "VERB"}
    for sentence in sentences:
        for word in sentence.words:
            assert word.upos in allowed and word.xpos and word.lemma
            assert needed.get(word.upos, set()) <= set(word.feats), word
            if word.feats.get("VerbForm") == "Fin" and word.form != "will":
                assert {"Tense", "Person", "Number", "Mood"} <= set(word.feats)


def test_tense_holds_for_the_document(docs):
    for made in docs:
        tenses = {word.feats["Tense"] for s in made.sentences for word in s.words
                  if word.feats.get("VerbForm") == "Fin" and "Tense" in word.feats}
        assert tenses <= ({"Past"} if made.tense == "past" else {"Pres"})
        will = any(word.form == "will" for s in made.sentences for word in s.words)
        assert will == (made.tense == "future")


def test_entities_are_introduced_and_kept(docs):
    for made in docs:
        mentions = defaultdict(list)
        for sentence in made.sentences:
            for word in sentence.words:
                if "Entity" in word.misc:
                    mentions[word.misc["Entity"]].append((sentence, word))
        for entity, places in mentions.items():
            nouns = {word.form for _, word in places if word.upos in ("NOUN", "PROPN")}
            assert len(nouns) == (entity != "7"), (entity, nouns)  # 7: hero and helper, "they"
        sentence, thing = mentions["2"][0]
        before = sentence.words[sentence.words.index(thing) - 2].form
        assert before in ("a", "an", "two", "three", "some")
        _, hero = mentions["1"][0]
        assert hero.form == made.hero
        genders = {word.feats["Gender"] for _, word in mentions["1"] if "Gender" in word.feats}
        assert genders <= {made.gender}


def test_conllu_round_trip(tmp_path, sentences):
    write_conllu(sentences[:500], tmp_path / "world.conllu")
    assert list(read_conllu(tmp_path / "world.conllu")) == sentences[:500]


# ---- the oracle


def kind(token) -> str:
    """Categories in which the oracle is checked one by one; none may depend on what was drawn."""
    if token.choice < 9:
        return "hero" if token.choice in (1, 2) else f"choice {token.choice}"
    return token.lex.upos.replace("NUM", "DET")


def test_words_of_one_choice_reveal_each_other(docs):
    """Given the choice's other words, the form follows; names of choices are unique otherwise."""
    for made in docs:
        groups = defaultdict(list)
        for sentence in made.sentences:
            for word in sentence.words:
                groups[int(word.misc["Choice"])].append(word)
                assert float(word.misc["Alone"]) <= float(word.misc["Oracle"]) <= 1
        for choice, words in groups.items():
            assert choice < 9 or len(words) == 1
            lemmas = {word.lemma for word in words}
            if choice not in (2, 8):  # pronouns of one gender; the problem and its remedy
                assert len(lemmas) == 1, lemmas


def test_guesses_are_right_as_often_as_the_oracle_says(derivations):
    """Calibration, overall and per category: mean hits within 4.5 standard errors."""
    for chance, guess in (("oracle", "guess"), ("alone", "alone_guess")):
        sums = defaultdict(lambda: [0, 0.0, 0.0])
        # Words of one choice share their luck: in "alone" each choice counts once a document.
        for derivation in derivations:
            once = set()
            for _, tokens in derivation.sentences:
                for token in tokens:
                    if chance == "alone" and token.choice < 9:
                        if token.choice in once or token.oracle < 1:
                            continue
                        once.add(token.choice)
                    p = getattr(token, chance)
                    for name in (kind(token), "all"):
                        sums[name][0] += getattr(token, guess) == token.lex.form
                        sums[name][1] += p
                        sums[name][2] += p * (1 - p)
        assert len(sums) > 15
        for name, (hits, expected, variance) in sums.items():
            assert abs(hits - expected) <= 4.5 * math.sqrt(variance) + 1e-6, (chance, name, hits,
                                                                             expected)


class Replayed:
    """A derivation's uniform numbers, one of them replaced."""

    def __init__(self, numbers, place=-1, value=0.0):
        self.numbers, self.place, self.value, self.next = numbers, place, value, 0

    def __call__(self):
        number = self.value if self.next == self.place else self.numbers[self.next]
        self.next += 1
        return number


def test_oracle_is_the_exact_posterior():
    """Each random number in turn is swept over a grid; where one single word changes, the shares of
    its forms are its distribution given all other words, and the largest is the oracle."""
    grid = 60
    checked = 0
    for index in (2, 5, 8):
        source = Uniforms(0, index)
        numbers = [source() for _ in range(400)]
        replay = Replayed(numbers)
        tokens = flat(Derivation(replay))
        for place in range(11, replay.next):  # the first eleven draw the document's cast
            forms = defaultdict(Counter)
            same = 0
            for step in range(grid):
                try:
                    other = flat(Derivation(Replayed(numbers, place, (step + 0.5) / grid)))
                except IndexError:  # a longer document
                    continue
                changed = [i for i, (a, b) in enumerate(zip(tokens, other))
                           if a.lex.form != b.lex.form] if len(other) == len(tokens) else []
                if other and not changed and len(other) == len(tokens):
                    same += 1
                elif len(changed) == 1:
                    forms[changed[0]][other[changed[0]].lex.form] += 1
            for word, shares in forms.items():
                token = tokens[word]
                if token.entity >= 8:
                    continue  # a part of the place takes two numbers: lemma and number
                total = same + shares.total()
                best = max(same, *shares.values()) / total
                assert abs(best - token.oracle) < 2.5 / grid + 0.02, (token, shares, same)
                checked += 1
    assert checked > 60


def flat(derivation):
    return [token for _, tokens in derivation.sentences for token in tokens]


def test_no_counting_predictor_beats_the_oracle(derivations):
    """Neighbours and topic, with counts from two thirds of the documents, on the last third."""
    counts = [defaultdict(Counter) for _ in range(3)]

    def contexts(derivation):
        for step, tokens in derivation.sentences:
            forms = ["", ""] + [token.lex.form for token in tokens] + ["", ""]
            for place, token in enumerate(tokens, 2):
                two, one, after, then = (*forms[place - 2: place], *forms[place + 1: place + 3])
                cast = derivation.cast
                yield token, ((two, one, after, then, cast.topic.name, cast.tense),
                              (one, after, cast.topic.name), (one,))

    cut = 2 * len(derivations) // 3
    for derivation in derivations[:cut]:
        for token, keys in contexts(derivation):
            for table, key in zip(counts, keys):
                table[key][token.lex.form] += 1
    sums = defaultdict(lambda: [0, 0, 0.0])
    for derivation in derivations[cut:]:
        for token, keys in contexts(derivation):
            table = next((table[key] for table, key in zip(counts, keys) if key in table), None)
            guess = table.most_common(1)[0][0] if table else "the"
            for name in (kind(token), "all"):
                sums[name][0] += 1
                sums[name][1] += guess == token.lex.form
                sums[name][2] += token.oracle
    n, hits, oracle = sums["all"]
    assert 0.4 < hits / n < oracle / n
    for name, (n, hits, oracle) in sums.items():
        assert hits <= oracle + 4 * math.sqrt(n), name
