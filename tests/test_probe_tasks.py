"""Tasks for probes: what each label says, by hand or by another algorithm; balance, seeds, splits."""

import dataclasses
import random
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path

from bertscope.analysis.probing import data, trees
from bertscope.analysis.probing.gold import Gold
from bertscope.analysis.probing.items import PARTS
from bertscope.analysis.probing.sampling import unseen_labels
from bertscope.analysis.probing.sources import open_source
from bertscope.analysis.probing.tasks import (
    MAKERS, items, offers, pair, perturbed, sentence, title, types_apart, word)
from bertscope.analysis.probing.tasks.common import Bins
from bertscope.corpus.conllu import Sentence, Word, read_conllu
from bertscope.errors import BertScopeError

EWT = Path(__file__).resolve().parents[2] / "shared" / "data" / "ud_english_ewt"
needs_ewt = pytest.mark.skipif(not EWT.is_dir(), reason=f"{EWT} is not there")


@pytest.fixture(scope="module")
def world():
    gold = data("miniworld")
    return Gold(gold.train[:900], gold.valid[:150], gold.test[:150], "part of miniworld")


def parsed(text: str, document: str = "") -> Sentence:
    """``"the/DET/2/det cat/NOUN/3/nsubj/Number=Sing sat/VERB/0/root"``."""
    words = []
    for field in text.split():
        form, upos, head, deprel, *feats = field.split("/")
        pairs = dict(pair.split("=") for pair in feats[0].split("|")) if feats else {}
        words.append(Word(form, form.lower(), upos, "", pairs, int(head), deprel))
    return Sentence(words, document=document)


CAT = parsed("The/DET/2/det cat/NOUN/3/nsubj/Number=Sing "
             "sat/VERB/0/root/Tense=Past|VerbForm=Fin on/ADP/5/case mats/NOUN/3/obl/Number=Plur "
             "./PUNCT/3/punct")


def gold_of(*sentences: Sentence, valid=(CAT,), test=(CAT,)) -> Gold:
    return Gold(list(sentences), list(valid), list(test), "made up")


def shown(made, place):
    return list(made.sentences[made.sentence[place]])


# -- trees ----------------------------------------------------------------------------------------


def random_heads(rng, count):
    """A random tree whose root is anywhere."""
    order = rng.sample(range(count), count)
    heads = [-1] * count
    for place, node in enumerate(order[1:], 1):
        heads[node] = order[rng.randrange(place)]
    return heads


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_distances_and_depths_are_scipys_shortest_paths(count):
    heads = random_heads(random.Random(count), count)
    graph = np.zeros((count, count))
    for node, head in enumerate(heads):
        if head >= 0:
            graph[node, head] = 1
    peer = shortest_path(csr_matrix(graph), directed=False)
    assert np.array_equal(trees.distances(heads), peer)
    assert trees.depths(heads) == peer[heads.index(-1)].tolist()
    assert trees.spanning_tree(peer, range(count)) == trees.edges(heads, range(count)) == {
        tuple(sorted((node, head))) for node, head in enumerate(heads) if head >= 0}


@pytest.mark.parametrize("seed", range(5))
def test_the_spanning_tree_is_scipys(seed):
    rng = np.random.default_rng(seed)
    distance = rng.random((12, 12)) + 0.01
    distance = np.triu(distance, 1) + np.triu(distance, 1).T
    kept = sorted(rng.choice(12, 9, replace=False).tolist())
    peer = minimum_spanning_tree(csr_matrix(distance[np.ix_(kept, kept)])).nonzero()
    assert trees.spanning_tree(distance, kept) == {
        (min(kept[a], kept[b]), max(kept[a], kept[b])) for a, b in zip(*peer)}


@pytest.mark.parametrize("heads", [[], [0], [1, 0], [-1, -1], [-1, 5], [-1, 2, 1], [1, 2, 0, -1]])
def test_what_is_no_tree_is_told(heads):
    assert trees.depths(heads) is None
    with pytest.raises(ValueError):
        trees.distances(heads)


def test_a_word_left_out_is_bridged():
    heads = [1, -1, 1, 2, 3]  # a chain below the root: 1 - 2 - 3 - 4
    assert trees.edges(heads, [0, 1, 3, 4]) == {(0, 1), (1, 3), (3, 4)}
    assert trees.edges(heads, [0, 2, 4]) == {(2, 4)}  # nothing above 0 and 2 is left


def test_a_missing_head_makes_no_tree():
    assert trees.heads(parsed("a/X/0/root b/X/1/dep")) == [-1, 0]
    assert trees.heads(Sentence([Word("a", head=0), Word("b")])) is None


# -- words and pairs ------------------------------------------------------------------------------


def test_distances_to_the_governor_by_hand():
    made = items(gold_of(CAT), "head-distance")
    found = {made.types[i]: made.labels[i] for i in made.where["train"]}
    assert found == {"The": "right 1", "cat": "right 1", "on": "right 1", "mats": "left 2",
                     ".": "left 3–4"}
    far = [word._far(offset) for offset in (-1, 2, -3, 4, 5, -9, 10, -99)]
    assert far == ["left 1", "right 2", "left 3–4", "right 3–4", "right 5–9", "left 5–9",
                   "right 10+", "left 10+"]


def test_pairs_are_dependent_and_governor():
    made = items(gold_of(CAT), "pair:deprel")
    rows = [(made.types[i], made.labels[i]) for i in made.where["train"]]
    assert rows == [("The cat", "det"), ("cat sat", "nsubj"), ("on mats", "case"),
                    ("mats sat", "obl"), (". sat", "punct")]
    assert made.spans[3].tolist() == [[4, 5], [2, 3]] and made.kind == "pair"


def test_half_of_the_candidates_are_governors():
    made = items(gold_of(*[CAT] * 30), "pair:head")
    heads = [w.head - 1 for w in CAT.words]
    for place in range(len(made)):
        first, second = made.spans[place, :, 0]
        assert (heads[first] == second) == (made.labels[place] == "governor") and first != second
        assert CAT.words[first].upos != "PUNCT"
    assert made.label_counts("train") == {"governor": 4 * 30, "another word": 4 * 30}
    others = {tuple(made.spans[i, :, 0]) for i in range(len(made)) if made.labels[i] != "governor"}
    assert len(others) > 10  # drawn anew


@pytest.mark.parametrize("tags, expected", [
    ("O B-a I-a O", [(1, 3, "a")]), ("B-a B-a", [(0, 1, "a"), (1, 2, "a")]),
    ("I-a I-b I-b", [(0, 1, "a"), (1, 3, "b")]), ("B-a I-a", [(0, 2, "a")]),
    ("S-a E-b", [(0, 1, "a"), (1, 2, "b")]), ("B-a I-a E-a B-a", [(0, 3, "a"), (3, 4, "a")]),
    ("U-a L-a", [(0, 2, "a")]), ("O", [])])
def test_mentions_of_tags(tags, expected):
    assert list(word.mentions(tags.split())) == expected


def test_entities_are_read_from_misc():
    def tagged(key, *tags):
        return Sentence([Word(f"w{i}", misc={key: tag} if tag else {}) for i, tag in enumerate(tags)])

    gold = gold_of(tagged("NER", "B-PER", "I-PER", "O", "B-LOC"), *[tagged("NER", "B-LOC", "")] * 3,
                   valid=[tagged("NER", "B-PER", "O")], test=[tagged("NER", "B-PER", "O")])
    assert items(gold, "ner").labels[:6] == ["B-PER", "I-PER", "O", "B-LOC", "B-LOC", "O"]
    made = items(gold, "entity")
    assert (made.types[0], made.labels[0], made.spans[0].tolist()) == ("w0 w1", "PER", [[0, 2]])
    numbers = gold_of(tagged("Entity", "1", "2"))  # an entity's number is no tag
    with pytest.raises(BertScopeError, match="nothing for the task ner"):
        items(numbers, "ner")


def test_coreference_in_miniworld_is_its_gold(world):
    made = items(world, "pair:coref")
    entity = {}
    for number, own in enumerate(world.sentences):
        entity[number] = [w.misc.get("Entity") for w in own.words]
    across = 0
    for place in range(len(made)):
        number, (i, j) = made.sentence[place], made.spans[place, :, 0]
        size = len(world.words[number])
        both = entity[number] + (entity[number + 1] if len(shown(made, place)) > size else [])
        assert shown(made, place)[:size] == world.words[number]
        assert (both[i] == both[j]) == (made.labels[place] == "same")
        assert shown(made, place)[i].lower() != shown(made, place)[j].lower()
        across += i < size <= j
    assert across > len(made) / 4
    for part in PARTS:
        assert len(set(made.label_counts(part).values())) == 1


# -- sentences --------------------------------------------------------------------------------------


def test_ranges_hold_equally_many():
    values = [1] * 100 + list(range(2, 302))
    ranges = Bins(values, 4)
    counts = Counter(map(ranges, values))
    assert sorted(counts.values()) == [100] * 4 and ranges(1) == ranges.names[0] == "up to 1"
    assert Bins([5, 5, 5], 6).names == ["all"] and Bins([5], 6)(99) == "all"
    small = Bins([1, 2, 3, 4], 2)
    assert [small(v) for v in (0, 2, 3, 9)] == ["up to 2", "up to 2", "3 and more", "3 and more"]


def test_lengths_are_true_and_balanced(world):
    made = items(world, "sent:length")
    for place, label in enumerate(made.labels):
        size, numbers = len(shown(made, place)), [int(n) for n in label.replace("–", " ").split()
                                                  if n.isdecimal()]
        low = 0 if label.startswith("up to") else numbers[0]
        high = 10**6 if label.endswith("more") else numbers[-1]
        assert low <= size <= high
    for part in PARTS:
        assert len(set(made.label_counts(part).values())) == 1
    assert len(made.classes) >= 4


def test_depths_are_true_and_length_tells_nothing_of_them(world):
    made = items(world, "sent:depth")
    for place in range(len(made)):
        heads = [w.head - 1 for w in world.sentences[made.sentence[place]].words]
        peer = max(len(path(heads, i)) for i in range(len(heads)))
        assert int(made.labels[place]) == peer
    by_length = defaultdict(Counter)
    for place in made.where["train"]:
        by_length[int(np.log(len(shown(made, place))) / np.log(1.15))][made.labels[place]] += 1
    assert len(by_length) > 3
    assert all(len(set(counts.values())) == 1 and len(counts) == len(made.classes)
               for counts in by_length.values())


def path(heads, place):
    return [] if heads[place] < 0 else [place, *path(heads, heads[place])]


def test_the_word_is_in_the_sentence_once_and_no_other_is():
    rng = random.Random(0)
    frequent = [f"frequent{'abcdefgh'[i]}" for i in range(8)]
    made_up = [Sentence([Word(rng.choice(frequent)), Word("the"), Word(rng.choice(frequent))])
               for _ in range(400)] + [Sentence([Word("rare"), Word("the")])] * 9
    gold = Gold(made_up, made_up[:80], made_up[80:160], "made up")
    with pytest.raises(BertScopeError, match="nothing for the task"):
        items(gold, "sent:word")  # each is in a quarter of the sentences: too frequent
    names = [f"word{chr(97 + i)}{chr(97 + j)}" for i in range(10) for j in range(10)]
    made_up = [Sentence([Word("the"), Word(names[i % 100].capitalize()), Word(f"x{i}y")]
                        + ([Word(names[(i + 1) % 100])] if i % 7 == 0 else []))
               for i in range(3000)]
    made = items(Gold(made_up[:2400], made_up[2400:2700], made_up[2700:], "made up"), "sent:word")
    assert len(made.classes) == 100
    for place, label in enumerate(made.labels):
        inside = [form.lower() for form in shown(made, place) if form.lower() in names]
        assert inside == [label] and made.types[place] == label
    assert len(set(made.label_counts("train").values())) == 1


def test_tense_and_number_by_hand():
    assert sentence.finite(CAT).form == "sat"
    passive = parsed("Boats/NOUN/3/nsubj/Number=Plur are/AUX/3/aux/Tense=Pres|VerbForm=Fin "
                     "taken/VERB/0/root/Tense=Past|VerbForm=Part home/ADV/3/advmod")
    assert sentence.finite(passive).form == "are"
    bare = parsed("Go/VERB/0/root/VerbForm=Inf home/ADV/1/advmod")
    assert sentence.finite(bare) is None and sentence.finite(Sentence([Word("x")])) is None
    seen = parsed("Dogs/NOUN/2/nsubj/Number=Plur saw/VERB/0/root/Tense=Past|VerbForm=Fin "
                  "a/DET/4/det cat/NOUN/2/obj/Number=Sing")
    two = parsed("Dogs/NOUN/2/nsubj/Number=Plur saw/VERB/0/root/Tense=Past cats/NOUN/2/obj/Number=Plur "
                 "cats/NOUN/2/obj/Number=Plur")
    she = parsed("She/PRON/2/nsubj/Number=Sing saw/VERB/0/root/Tense=Past")
    assert sentence._number(seen, ("nsubj",)) == ("Plur", "Dogs")
    assert sentence._number(seen, ("obj",)) == ("Sing", "cat")
    assert sentence._number(two, ("obj",)) is None and sentence._number(she, ("nsubj",)) is None
    gold = gold_of(*[passive, CAT] * 15, passive, valid=[passive, CAT], test=[CAT, passive, bare])
    made = items(gold, "sent:tense")
    assert made.label_counts("train") == {"Past": 15, "Pres": 15}
    assert {made.types[i] for i in made.where["test"]} == {"sat", "are"}


@pytest.mark.parametrize("task", ["sent:shift", "sent:odd"])
def test_no_sentence_is_there_in_both_versions_and_half_are_changed(world, task):
    made = items(world, task, seed=3)
    assert len(set(made.sentence.tolist())) == len(made) > 800
    for part in PARTS:
        counts = made.label_counts(part)
        assert counts["changed"] == counts["original"] > 0 and len(counts) == 2
    for place, label in enumerate(made.labels):
        number = int(made.sentence[place])
        assert (shown(made, place) != world.words[number]) == (label == "changed")
        assert made.parts[place] == world.parts[number]
    assert made.fingerprint == items(world, task, seed=3).fingerprint
    assert made.fingerprint != items(world, task, seed=4).fingerprint


def test_two_neighbours_are_swapped_and_not_the_first_word(world):
    made = items(world, "sent:shift")
    for place, label in enumerate(made.labels):
        if label == "changed":
            number = int(made.sentence[place])
            old, new = world.words[number], shown(made, place)
            different = [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
            first, second = different
            assert second == first + 1 and first > 0
            assert (old[first], old[second]) == (new[second], new[first])
            assert "PUNCT" not in [world.sentences[number].words[i].upos for i in different]


def test_the_odd_one_has_the_same_tag_and_a_like_frequency(world):
    made = items(world, "sent:odd")
    counts, replaced = Counter(), defaultdict(set)

    def key(w, form=None):
        return (form or w.form).lower(), w.upos, w.xpos, tuple(sorted(w.feats.items()))

    for own in world.sentences:
        counts.update(key(w) for w in own.words)
    for place, label in enumerate(made.labels):
        if label == "changed":
            own = world.sentences[int(made.sentence[place])]
            (at,) = [i for i, (w, form) in enumerate(zip(own.words, shown(made, place), strict=True))
                     if w.form != form]
            new = shown(made, place)[at]
            assert own.words[at].upos in ("NOUN", "VERB")
            assert 0.5 <= counts[key(own.words[at], new)] / counts[key(own.words[at])] <= 2
            replaced[made.parts[place]].add(new.lower())
    assert all(len(forms) > 5 for forms in replaced.values()) and len(replaced) == 3
    for a, b in (("train", "test"), ("train", "validation"), ("validation", "test")):
        assert not replaced[a] & replaced[b]


def clauses(first: str, second: str, cc="and", comma=False, extra="") -> Sentence:
    """``"Dogs bark"`` and ``"cats sleep"``: subject, verb and what else there is."""
    a, b = first.split(), second.split()
    root, conj = 2, len(a) + comma + 1 + 2
    words = [Word(form, form.lower(), upos, head=head, deprel=rel) for form, upos, head, rel in (
        (a[0], "PROPN" if a[0] == "Anna" else "NOUN", root, "nsubj"), (a[1], "VERB", 0, "root"),
        *((form, "ADV", root, "advmod") for form in a[2:]),
        *([(",", "PUNCT", conj, "punct")] if comma else []), (cc, "CCONJ", conj, "cc"),
        (b[0], "NOUN", conj, extra or "nsubj"), (b[1], "VERB", root, "conj"),
        *((form, "ADV", conj, "advmod") for form in b[2:]), (".", "PUNCT", root, "punct"))]
    return Sentence(words)


def test_two_clauses_change_places():
    def swapped(own):
        return " ".join(perturbed._ordered(*perturbed._clauses(own), swap=True))

    assert swapped(clauses("Dogs bark", "cats sleep")) == "Cats sleep and dogs bark ."
    assert swapped(clauses("Anna left early", "I stayed", "but", True)) == \
        "I stayed , but Anna left early ."
    assert " ".join(perturbed._ordered(*perturbed._clauses(clauses("Dogs bark", "cats sleep")),
                                       swap=False)) == "Dogs bark and cats sleep ."
    assert perturbed._clauses(clauses("Dogs bark", "cats sleep", extra="obl")) is None  # no subject
    assert perturbed._clauses(CAT) is None and perturbed._clauses(Sentence([Word("x")])) is None


def test_the_longer_clause_is_first_as_often_in_changed_sentences():
    rng = random.Random(1)
    made_up = [clauses(f"Dogs{i} bark" + " x" * rng.choice([0, 1, 4]),
                       f"cats{i} sleep" + " y" * rng.choice([0, 2])) for i in range(400)]
    made = items(Gold(made_up[:300], made_up[300:350], made_up[350:], "made up"), "sent:coordination")
    table = Counter()
    for place, label in enumerate(made.labels):
        words = shown(made, place)
        at = words.index("and")
        table[made.parts[place], label, np.sign(2 * at + 2 - len(words))] += 1
    for part in PARTS:
        for sign in (-1, 0, 1):
            assert table[part, "changed", sign] == table[part, "original", sign]
    assert table["train", "changed", 1] > 20 and table["train", "changed", 0] > 10


# -- offers, parts, types ---------------------------------------------------------------------------


def test_what_miniworld_offers(world):
    found = {task.name: task for task in offers(world)}
    assert {"upos", "xpos", "deprel", "feat:Number", "feat:Number@NOUN", "head-distance",
            "pair:deprel", "pair:head", "pair:coref", "sent:length", "sent:depth", "sent:tense",
            "sent:subject", "sent:shift", "sent:odd"} <= set(found)
    assert "ner" not in found and "sent:coordination" not in found
    for name, task in found.items():
        made = items(world, name)
        assert (task.kind, task.words, task.title) == (made.kind, len(made), title(name))
        assert made.provenance["source"] == "part of miniworld"
    assert {task.kind for task in found.values()} == {"word", "pair", "sentence"}


@pytest.mark.parametrize("task", ["", "pos", "sent:", "pair:x", "feat:", "sent:length@NOUN"])
def test_there_is_no_such_task(world, task):
    with pytest.raises(BertScopeError, match="There is no task called"):
        items(world, task)


@pytest.mark.parametrize("task", [*MAKERS, "upos", "xpos", "deprel", "feat:Number"])
def test_missing_columns_are_refused_in_a_sentence(task):
    bare = [Sentence([Word("a"), Word("b"), Word("c"), Word("d"), Word("e")])] * 3
    with pytest.raises(BertScopeError, match=f"task {task}") as caught:
        items(Gold(bare, bare, bare, "bare"), task)
    assert "\n" not in str(caught.value)


def test_no_type_is_in_two_parts_and_each_part_gets_its_share(world):
    made = items(world, "upos")
    apart = types_apart(made, seed=1)
    forms = {part: {apart.types[i].lower() for i in apart.where[part]} for part in PARTS}
    assert not forms["train"] & forms["test"] and not forms["train"] & forms["validation"]
    assert not forms["validation"] & forms["test"]
    assert len(apart.where["train"]) > 0.3 * len(made.where["train"])
    assert "no word type" in apart.provenance["types"]
    assert items(world, "upos", seed=1, apart=True).fingerprint == apart.fingerprint
    bare = dataclasses.replace(made, types=[""] * len(made))
    with pytest.raises(BertScopeError, match="no word that stands"):
        types_apart(bare)
    with pytest.raises(BertScopeError, match="too few word types"):
        types_apart(dataclasses.replace(made, types=["x"] * len(made)))


def test_sentences_of_two_parts_are_told_or_left_out():
    other = parsed("x/X/0/root y/Y/1/dep")
    gold = Gold([CAT, other, CAT, other], [other, other], [CAT], "made up")
    assert gold.in_two_parts == 4
    assert items(gold, "upos").provenance["sentences_in_two_parts"] == 4
    kept = gold.without_duplicates()
    assert (kept.train, kept.valid, kept.test) == ([], [other, other], [CAT])
    assert kept.in_two_parts == 0 and kept.notices == {}


def test_labels_seen_once_or_only_in_test_stay():
    """The probe gets the second kind wrong, and ``sampling.unseen_labels`` says how many there are."""
    gold = gold_of(CAT, parsed("a/X/0/root"), test=[CAT, parsed("b/Y/0/root b/Y/1/dep")])
    made = items(gold, "upos")
    assert made.label_counts("train")["X"] == 1 and "Y" not in made.classes
    assert made.label_counts("test")["Y"] == 2 and unseen_labels(made) == {"Y": 2}


def test_too_many_labels_are_refused():
    many = [Sentence([Word("a", xpos=f"tag{i}") for i in range(1001)])]
    with pytest.raises(BertScopeError, match="1,001 different labels"):
        items(gold_of(*many, valid=many, test=many), "xpos")


def test_one_label_is_nothing_to_learn():
    with pytest.raises(BertScopeError, match="same label; there is nothing to learn"):
        items(gold_of(parsed("a/X/0/root b/X/1/x"), valid=[CAT], test=[CAT]), "upos")


CONLLU = """\
# newdoc id = d{0}
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos{0}\tir\tVERB\t_\t_\t0\troot\t_\t_
1.1\tx\tx\tNOUN\t_\t_\t_\t_\t1:x\t_
2\tnos\tnosotros\tPRON\t_\tNumber=Plur\t1\tobj\t_\t_
3\tmar{0}\t_\t_\t_\t_\t_\t_\t_\t_

"""


def test_multiword_tokens_empty_nodes_and_gaps(tmp_path):
    (tmp_path / "x.conllu").write_text("".join(CONLLU.format(i) for i in range(30)))
    source = open_source(tmp_path / "x.conllu")
    made = source.items("upos")
    assert made.sentences[0][1:2] == ["nos"] and len(made.sentences[0]) == 3
    assert Counter(made.labels) == {"VERB": 30, "PRON": 30}  # the third word has no tag: no item
    assert made.spans[:2, 0].tolist() == [[0, 1], [1, 2]]
    assert source.fingerprint == source.gold.fingerprint
    with pytest.raises(BertScopeError, match="sent:depth"):
        source.items("sent:depth")  # the third word has no head: no tree
    assert {t.name for t in source.offers()} >= {"upos", "deprel", "pair:head"}


@pytest.mark.parametrize("line, sentence", [
    ("1\ta\ta\tX\t_\t_\t0\troot\t_", "line 3.*10 columns"),
    ("1\ta\ta\tX\t_\t_\tzero\troot\t_\t_", "line 3: HEAD"),
    (f"1\ta\ta\tX\t_\t_\t{'9' * 5000}\troot\t_\t_", "line 3: HEAD"),
    (f"{'9' * 5000}\ta\ta\tX\t_\t_\t0\troot\t_\t_", "line 3: '9999"),
    (f"{'9' * 5000}x\ta\ta\tX\t_\t_\t0\troot\t_\t_", "line 3: '9999"),
    ("2\ta\ta\tX\t_\t_\t0\troot\t_\t_", "line 3: word 1 should come"),
    ("1\ta\ta\tX\t_\tSing\t0\troot\t_\t_", "line 3: FEATS")])
def test_a_malformed_line_is_named(tmp_path, line, sentence):
    (tmp_path / "x.conllu").write_text(f"# a = b\n# c\n{line}\n\n")
    with pytest.raises(BertScopeError, match=sentence):
        open_source(tmp_path / "x.conllu")


@pytest.mark.parametrize("source", ["~nobody-of-that-name/x", "x" * 5000, "a\0b", "", "/nowhere"])
def test_what_is_no_path_is_refused(source):
    with pytest.raises(BertScopeError) as caught:
        open_source(source)
    assert len(str(caught.value)) < 500


# -- the treebank that everybody uses ---------------------------------------------------------------


@needs_ewt
def test_ewts_known_sizes():
    """Tokens of the parts, and arcs without root and punctuation, as others count them."""
    made = Gold([], list(read_conllu(EWT / "en_ewt-ud-dev.conllu")),
                list(read_conllu(EWT / "en_ewt-ud-test.conllu")), "ewt")
    made = dataclasses.replace(made, train=made.valid)
    upos, pairs = items(made, "upos"), pair.relations(made)
    assert [len(upos.where[part]) for part in PARTS] == [25_147, 25_147, 25_094]
    arcs = {part: sum(pairs.labels[i].partition(":")[0] != "punct" for i in pairs.where[part])
            for part in PARTS}
    assert (arcs["validation"], arcs["test"]) == (20_085, 19_952)
    coordinated = items(made, "sent:coordination")
    assert min(len(coordinated.where[part]) for part in PARTS) > 50
    depth = items(made, "sent:depth")
    lengths = np.array([len(shown(depth, i)) for i in depth.where["train"]])
    labels = np.array([int(depth.labels[i]) for i in depth.where["train"]])
    every = [(len(s.words), max(trees.depths(h))) for s in made.train if (h := trees.heads(s))]
    assert abs(np.corrcoef(lengths, labels)[0, 1]) < 0.1 < 0.7 < np.corrcoef(*zip(*every))[0, 1]
