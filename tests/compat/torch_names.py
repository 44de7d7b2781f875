"""What torch has that fgrad.compat answers for: every public name, and what is to be said of some of them.

`NAMES` has the public names of torch 2.13 by namespace; tests/parity/test_compat_names.py holds it against torch.
`NOTES` says how a name differs, or why it is missing. docs/torch-parity.md is made of both (see `parity_page`).
"""

NAMES = {
    "torch.autograd": """
        Function Variable backward detect_anomaly enable_grad enforce_grad_layout_policy grad grad_mode gradcheck
        gradgradcheck inference_mode NestedIOFunction no_grad set_detect_anomaly set_grad_enabled
        set_multithreading_enabled variable
    """,
    "torch.autograd.function": """
        BackwardCFunction Function FunctionCtx FunctionMeta InplaceFunction NestedIOFunction once_differentiable
    """,
    "torch.autograd.Function": """
        apply backward boxed_grads_call clear_saved_tensors_on_access forward generate_vmap_rule jvp setup_context vjp
        vmap
    """,
    "ctx": """
        dirty_tensors mark_dirty mark_non_differentiable mark_shared_storage materialize_grads
        maybe_clear_saved_tensors metadata name needs_input_grad next_functions non_differentiable register_hook
        register_prehook requires_grad save_for_backward save_for_forward saved_for_forward saved_tensors
        saved_variables set_materialize_grads to_save
    """,
    "torch.autograd.functional": "hessian hvp jacobian jvp vhp vjp",
    "torch.autograd.forward_ad": """
        UnpackedDualTensor dual_level enter_dual_level exit_dual_level make_dual unpack_dual
    """,
    "torch.autograd.grad_mode": """
        enable_grad enforce_grad_layout_policy inference_mode no_grad set_grad_enabled set_multithreading_enabled
    """,
    "torch.autograd.graph": """
        GradientEdge Node allow_mutation_on_saved_tensors disable_saved_tensors_hooks get_gradient_edge
        increment_version region_activation_memory_budget register_multi_grad_hook save_on_cpu saved_tensors_hooks
        set_override_stale_capture_stream set_warn_on_accumulate_grad_stream_mismatch
    """,
    "torch.autograd.gradcheck": """
        GradcheckError get_analytical_jacobian get_numerical_jacobian get_numerical_jacobian_wrt_specific_input
        gradcheck gradgradcheck
    """,
    "torch.autograd.anomaly_mode": "detect_anomaly set_detect_anomaly",
    "torch.autograd.profiler": """
        EnforceUnique EventList FunctionEvent KinetoStepTracker MemRecordsAcc emit_itt emit_nvtx load_nvprof
        parse_nvprof_trace profile record_function
    """,
    "torch.func": """
        debug_unwrap functional_call functionalize grad grad_and_value hessian jacfwd jacrev jvp linearize rearrange
        replace_all_batch_norm_modules_ stack_module_state vjp vmap
    """,
    "torch.utils.checkpoint": """
        CheckpointError CheckpointFunction CheckpointPolicy DefaultDeviceType GraphExecGroup SAC_IGNORED_OPS
        SelectiveCheckpointContext check_backward_validity checkpoint checkpoint_sequential
        create_selective_checkpoint_contexts detach_variable get_device_states noop_context_fn
        set_checkpoint_debug_enabled set_checkpoint_early_stop set_device_states
    """,
}
NAMES["torch.Tensor"] = """
    H T abs abs_ absolute absolute_ acos acos_ acosh acosh_ add add_ addbmm addbmm_ addcdiv addcdiv_ addcmul
    addcmul_ addmm addmm_ addmv addmv_ addr addr_ adjoint all allclose amax amin aminmax angle any apply_ arccos
    arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2 arctan2_ arctan_ arctanh arctanh_ argmax
    argmin argsort argwhere as_strided as_strided_ as_strided_scatter as_subclass asin asin_ asinh asinh_ atan atan2
    atan2_ atan_ atanh atanh_ backward baddbmm baddbmm_ bernoulli bernoulli_ bfloat16 bincount bitwise_and
    bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or bitwise_or_
    bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ bmm bool broadcast_to byte cauchy_
    ccol_indices cdouble ceil ceil_ cfloat chalf char cholesky cholesky_inverse cholesky_solve chunk clamp clamp_
    clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ clone coalesce col_indices conj conj_physical
    conj_physical_ const_data_ptr contiguous copy_ copysign copysign_ corrcoef cos cos_ cosh cosh_ count_nonzero cov
    cpu cross crow_indices cuda cummax cummin cumprod cumprod_ cumsum cumsum_ data data_ptr deg2rad deg2rad_
    dense_dim dequantize det detach detach_ device diag diag_embed diagflat diagonal diagonal_scatter diff digamma
    digamma_ dim dim_order dist div div_ divide divide_ dot double dsplit dtype eig element_size eq eq_ equal erf
    erf_ erfc erfc_ erfinv erfinv_ exp exp2 exp2_ exp_ expand expand_as expm1 expm1_ exponential_ fill_
    fill_diagonal_ fix fix_ flatten flip fliplr flipud float float_power float_power_ floor floor_ floor_divide
    floor_divide_ fmax fmin fmod fmod_ frac frac_ frexp gather gcd gcd_ ge ge_ geometric_ geqrf ger get_device grad
    grad_dtype grad_fn greater greater_ greater_equal greater_equal_ gt gt_ half hardshrink hash_tensor heaviside
    heaviside_ histc histogram hsplit hypot hypot_ i0 i0_ igamma igamma_ igammac igammac_ imag index index_add
    index_add_ index_copy index_copy_ index_fill index_fill_ index_put index_put_ index_reduce index_reduce_
    index_select indices inner int int_repr inverse ipu is_coalesced is_complex is_conj is_contiguous is_cpu is_cuda
    is_distributed is_floating_point is_inference is_ipu is_leaf is_maia is_meta is_mkldnn is_mps is_mtia is_neg
    is_nested is_nonzero is_pinned is_quantized is_same_size is_set_to is_shared is_signed is_sparse is_sparse_csr
    is_vulkan is_xla is_xpu isclose isfinite isinf isnan isneginf isposinf isreal istft item itemsize kron kthvalue
    layout lcm lcm_ ldexp ldexp_ le le_ lerp lerp_ less less_ less_equal less_equal_ lgamma lgamma_ log log10 log10_
    log1p log1p_ log2 log2_ log_ log_normal_ log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and
    logical_and_ logical_not logical_not_ logical_or logical_or_ logical_xor logical_xor_ logit logit_ logsumexp
    long lstsq lt lt_ lu lu_solve mH mT map2_ map_ masked_fill masked_fill_ masked_scatter masked_scatter_
    masked_select matmul matrix_exp matrix_power max maximum mean median min minimum mm mode module_load moveaxis
    movedim msort mtia mul mul_ multinomial multiply multiply_ mv mvlgamma mvlgamma_ name nan_to_num nan_to_num_
    nanmean nanmedian nanquantile nansum narrow narrow_copy nbytes ndim ndimension ne ne_ neg neg_ negative
    negative_ nelement new new_empty new_empty_strided new_full new_ones new_tensor new_zeros nextafter nextafter_
    nonzero nonzero_static norm normal_ not_equal not_equal_ numel numpy orgqr ormqr outer output_nr permute
    pin_memory pinverse polygamma polygamma_ positive pow pow_ prelu prod put put_ q_per_channel_axis
    q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qr qscheme quantile rad2deg rad2deg_ random_
    ravel real reciprocal reciprocal_ record_stream register_hook register_post_accumulate_grad_hook reinforce relu
    relu_ remainder remainder_ renorm renorm_ repeat repeat_interleave requires_grad requires_grad_ reshape
    reshape_as resize resize_ resize_as resize_as_ resize_as_sparse_ resolve_conj resolve_neg retain_grad
    retains_grad roll rot90 round round_ row_indices rsqrt rsqrt_ scatter scatter_ scatter_add scatter_add_
    scatter_reduce scatter_reduce_ select select_scatter set_ sgn sgn_ shape share_memory_ short sigmoid sigmoid_
    sign sign_ signbit sin sin_ sinc sinc_ sinh sinh_ size slice_inverse slice_scatter slogdet smm softmax solve
    sort sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_ split split_with_sizes sqrt sqrt_ square
    square_ squeeze squeeze_ sspaddmm std stft storage storage_offset storage_type stride sub sub_ subtract
    subtract_ sum sum_to_size svd swapaxes swapaxes_ swapdims swapdims_ symeig t t_ take take_along_dim tan tan_
    tanh tanh_ tensor_split tile to to_dense to_mkldnn to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr
    to_sparse_coo to_sparse_csc to_sparse_csr tolist topk trace transpose transpose_ triangular_solve tril tril_
    triu triu_ true_divide true_divide_ trunc trunc_ type type_as unbind unflatten unfold uniform_ unique
    unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_ untyped_storage values
    var vdot view view_as volatile vsplit where xlogy xlogy_ xpu zero_
"""

EXCEPTIONS = (
    (
        "`torch.tensor([1], requires_grad=True)` in three examples",
        "`torch.tensor([1.], requires_grad=True)`; integers raise torch's error",
        "only floating and complex tensors have gradients, in torch as well",
    ),
    (
        '`.cuda()` and `device="cuda"`',
        "on a GPU through CuPy; without one, torch's error of a build without CUDA",
        "held by a stand-in for a GPU, which refuses what CuPy refuses",
    ),
    (
        "`no_grad` has no effect inside `enable_grad`, nor `set_grad_enabled(False)`",
        "the innermost mode holds",
        "so does torch; the two sentences were never true",
    ),
    ("`grad_variables=` of `backward`", "works, with a FutureWarning", "as torch until it was removed"),
    (
        "size, stride and memory changes of what `detach()` returned trigger an error",
        "`resize_`, `resize_as_` and `set_` do; `transpose_` and its kin change the returned tensor alone",
        "torch lets the latter since; programs written for 1.4 still work",
    ),
    ("`saved_variables` of R torch's context", "by name or position; torch's deprecated tuple otherwise", "both pages"),
)
"""Where the documentation of 1.4 and what happens differ: what the page says, what happens here, why."""

NESTED = "nested arguments: torch keeps it for old programs alone"
THREADS = "passes run in the thread that asks for them"
GPU = "about streams or layouts of a GPU"
MODULES = "`torch.nn` modules are not here"
SELECTIVE = "about choosing what to recompute, op by op, for torch.compile"
DIFFERENCES = "use `gradcheck`, or `fgrad.check_grads`"


def _all(reason, names):
    return dict.fromkeys(names.split(), reason)


NOTES = {
    "torch.autograd": {
        "NestedIOFunction": NESTED,
        "set_multithreading_enabled": THREADS,
        "enforce_grad_layout_policy": GPU,
        "Variable": "deprecated: returns a tensor",
    },
    "torch.autograd.function": {"NestedIOFunction": NESTED},
    "torch.autograd.Function": {
        "boxed_grads_call": "about torch.compile",
        "clear_saved_tensors_on_access": "about torch.compile",
    },
    "ctx": {
        "maybe_clear_saved_tensors": "about torch.compile",
        "saved_variables": "R torch's meaning after saving by name; else deprecated",
        "mark_shared_storage": "deprecated: does nothing",
    },
    "torch.autograd.grad_mode": {"set_multithreading_enabled": THREADS, "enforce_grad_layout_policy": GPU},
    "torch.autograd.graph": {
        "allow_mutation_on_saved_tensors": "saved tensors are checked, never copied on a write",
        "set_warn_on_accumulate_grad_stream_mismatch": GPU,
        "set_override_stale_capture_stream": GPU,
        "region_activation_memory_budget": "about torch.compile",
    },
    "torch.autograd.gradcheck": {
        "get_analytical_jacobian": DIFFERENCES,
        "get_numerical_jacobian": DIFFERENCES,
        "get_numerical_jacobian_wrt_specific_input": DIFFERENCES,
    },
    "torch.func": {
        "functional_call": MODULES,
        "stack_module_state": MODULES,
        "replace_all_batch_norm_modules_": MODULES,
        "functionalize": "about torch.compile",
        "rearrange": "use reshape and permute",
        "debug_unwrap": "print shows what a traced tensor stands for",
    },
    "torch.utils.checkpoint": {
        **_all(SELECTIVE, "CheckpointPolicy GraphExecGroup SAC_IGNORED_OPS SelectiveCheckpointContext"),
        "create_selective_checkpoint_contexts": SELECTIVE,
        **_all(GPU, "DefaultDeviceType get_device_states set_device_states"),
        "checkpoint": "both values of `use_reentrant` recompute in the same way",
    },
    "torch.autograd.profiler": {
        **_all("about Kineto, the tracer of torch's own kernels", "KinetoStepTracker MemRecordsAcc EnforceUnique"),
        **_all("about the profilers of hardware makers", "emit_itt parse_nvprof_trace"),
    },
}
NOTES["torch.autograd.forward_ad"] = {
    "exit_dual_level": "a dual tensor that is used after its level raises an error",
    "unpack_dual": "the tangent has no history: differentiate a gradient forward, not a tangent backward",
}
QUANTIZED = "quantized tensors are not here"
DEVICES = "about streams, devices other than CPUs and NVIDIA's GPUs, and layouts other than the strided one"
COMPRESSED = "compressed sparse layouts are not here"
RESIZED = "sparse tensors are not resized in place"

NOTES["torch.Tensor"] = {
    **_all(QUANTIZED, "dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points"),
    **_all(QUANTIZED, "q_scale q_zero_point qscheme"),
    **_all(DEVICES, "ipu is_distributed mtia to_mkldnn xpu record_stream to_padded_tensor slice_inverse module_load"),
    **_all(COMPRESSED, "ccol_indices col_indices crow_indices row_indices to_sparse_bsc to_sparse_bsr to_sparse_csc"),
    **_all(COMPRESSED, "to_sparse_csr sspaddmm smm"),
    **_all(RESIZED, "resize_as_sparse_ sparse_resize_ sparse_resize_and_clear_"),
    **_all("use `torch.linalg.qr` or `torch.linalg.solve`", "geqrf orgqr ormqr lu lu_solve"),
    **_all("signal processing is not here; `torch.fft` is", "stft istft"),
    **_all("about torch.compile", "nonzero_static hash_tensor"),
    **_all("removed by torch itself: raises an error that says so", "eig lstsq solve symeig reinforce"),
    "sparse_mask": "sparse tensors have what `gradcheck` and accumulation need",
    "to_sparse_coo": "use `to_sparse`",
    "chalf": "NumPy has no complex type of 32 bits",
    "index": "an alias of indexing that torch keeps for tracing",
    "detach": "its result refuses `resize_` and `set_`, as the 1.4 page says",
    "bfloat16": "needs the package ml_dtypes",
    "cuda": "raises torch's error of a build without CUDA where there is no GPU",
}
