"""The app: page configuration, the sidebar, the pages. ``bertscope app`` serves it."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: it shares cores with trainers
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import streamlit as st

from bertscope.ui import address, frame, loaders, run_form, run_watch, sidebar, theme

st.set_page_config("BertScope", page_icon=theme.picture("icon"), layout="wide")
st.logo(theme.picture("logo"), icon_image=theme.picture("icon"), size="large")
st.html(theme.CSS)
loaders.warm_up()
PAGES = {"train": ("Train", ":material/model_training:"),
         "masking": ("Masking", ":material/visibility_off:"),
         "predict": ("Predict", ":material/text_fields:"),
         "next_sentence": ("Next sentence", ":material/linear_scale:"),
         "attention": ("Attention", ":material/grid_on:"),
         "embeddings": ("Embeddings", ":material/scatter_plot:"),
         "probing": ("Probing", ":material/layers:"),
         "fine_tuning": ("Fine-tuning", ":material/school:")}
here = st.navigation([st.Page(f"{frame.PAGES}/{name}.py", title=title, icon=icon,
                              default=name == "train")
                      for name, (title, icon) in PAGES.items()])
address.tidy()
run_form.open_started_run()
run_watch.forget_deleted_run()
sidebar.render()
here.run()
