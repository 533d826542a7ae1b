"""Four tasks on a pretrained encoder: a sentence, a pair of sentences, the words of one, a question."""
