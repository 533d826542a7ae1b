"""The app: page configuration, the sidebar, the pages. ``bertscope app`` serves it."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: it shares cores with trainers
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import streamlit as st

from bertscope.ui import loaders, run_form, run_watch, sidebar, theme

st.set_page_config("BertScope", page_icon=theme.picture("icon"), layout="wide")
st.logo(theme.picture("logo"), icon_image=theme.picture("icon"), size="large")
st.html(theme.CSS)
loaders.warm_up()
here = st.navigation([
    st.Page("pages/train.py", title="Train", icon=":material/model_training:", default=True),
    st.Page("pages/predict.py", title="Predict", icon=":material/text_fields:"),
    st.Page("pages/next_sentence.py", title="Next sentence", icon=":material/linear_scale:"),
    st.Page("pages/attention.py", title="Attention", icon=":material/grid_on:"),
    st.Page("pages/embeddings.py", title="Embeddings", icon=":material/scatter_plot:"),
    st.Page("pages/probing.py", title="Probing", icon=":material/layers:"),
])
st.session_state["_on_train_page"] = here.title == "Train"
run_form.open_started_run()
run_watch.forget_deleted_run()
sidebar.render()
here.run()
