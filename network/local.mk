# SPDX-License-Identifier: BSD-2-Clause
# Networks: layers, the graph, architectures, and weights in and out.
noinst_LTLIBRARIES += libnetwork.la
libnetwork_la_SOURCES = \
	network/arch.c network/arch.h \
	network/graph.c network/graph.h \
	network/label_shape.h \
	network/network.c network/network.h network/network_state.h \
	network/network_gradients.c \
	network/network_plans.c \
	network/network_run.c \
	network/network_tensors.c \
	network/network_update.c \
	network/safetensors.c network/safetensors.h \
	network/weights.c network/weights.h
libnetwork_la_LIBADD = libdevice.la libcommon.la $(ZLIB_LIBS)
