import type { Preset, PresetRule } from '../shared/preset.ts'

const MAX_TOKENS_RULE: PresetRule = { rename: 'max_tokens' }

/** Companies that serve their own models. */
const MODEL_MAKER_PRESETS = {
  deepseek: {
    id: 'deepseek',
    claims: ['deepseek-*'],
    name: 'DeepSeek',
    baseURL: 'https://api.deepseek.com',
    keyVariables: ['DEEPSEEK_API_KEY'],
    needsKey: true,
    serves: ['chat', 'completions'],
    // DeepSeek, "FIM Completion (Beta)": at most 4K tokens, without thinking.
    completions: {
      path: '/beta/completions',
      models: /^deepseek-(?!reasoner)/,
      maxTokens: 4_096,
      takesLists: false,
      fields: { n: { atMost: 1 }, best_of: { atMost: 1 }, logit_bias: 'refuse', seed: 'drop', user: 'drop' },
    },
    fields: { max_completion_tokens: MAX_TOKENS_RULE, seed: 'drop' },
    reasoning: { back: 'always', as: 'reasoning_content', evenEmpty: true },
    // Models before V4 reject what V4 requires.
    byModel: [[/^deepseek-(?:reasoner|chat|coder)$/, { reasoning: { back: 'never' } }]],
  },
  mistral: {
    id: 'mistral',
    claims: ['mistral-*', 'ministral-*', 'magistral-*', 'codestral-*', 'devstral-*', 'pixtral-*', 'voxtral-*'],
    name: 'Mistral',
    baseURL: 'https://api.mistral.ai/v1',
    keyVariables: ['MISTRAL_API_KEY'],
    needsKey: true,
    serves: ['chat', 'embeddings', 'moderations', 'completions'],
    moderations: { takesParts: false },
    // Mistral, "Fill-in-the-middle": a member that it does not know gets 422.
    completions: {
      path: '/fim/completions',
      models: /^codestral-(?!embed|mamba)/,
      takesLists: false,
      answersAsChat: true,
      fields: {
        seed: { rename: 'random_seed' },
        n: 'refuse',
        best_of: 'refuse',
        echo: 'refuse',
        logprobs: 'refuse',
        logit_bias: 'refuse',
        presence_penalty: 'refuse',
        frequency_penalty: 'refuse',
        user: 'drop',
      },
    },
    // Mistral, "Embeddings": unknown members get 422.
    embeddings: {
      maxInputs: 256,
      takesTokens: false,
      fields: { dimensions: { rename: 'output_dimension' }, user: 'drop' },
    },
    fields: {
      max_completion_tokens: MAX_TOKENS_RULE,
      seed: { rename: 'random_seed' },
      logit_bias: 'refuse',
      logprobs: 'refuse',
      top_logprobs: 'refuse',
      user: 'drop',
      store: 'drop',
      metadata: 'drop',
      safety_identifier: 'drop',
      service_tier: 'drop',
      prompt_cache_retention: 'drop',
      verbosity: 'drop',
    },
    // Other members are answered with 422 "Extra inputs are not permitted", even if null.
    messageMembers: ['role', 'content', 'tool_calls', 'tool_call_id', 'prefix'],
    toolChoice: { required: 'any', cutsNamed: true },
    toolIdLength: 9,
    prefillMember: 'prefix',
    // 400 "Unexpected role 'user' after role 'tool'", code 3230.
    answersTools: true,
    asksForUsage: false,
  },
  xai: {
    id: 'xai',
    claims: ['grok-*'],
    name: 'xAI',
    baseURL: 'https://api.x.ai/v1',
    keyVariables: ['XAI_API_KEY'],
    needsKey: true,
    serves: ['chat', 'responses', 'images'],
    // Answers are stored for 30 days (xAI, "Generate Text").
    responses: { keepsAnswers: true },
    fields: {
      max_tokens: { rename: 'max_completion_tokens' },
      parallel_tool_calls: { rename: 'parallel_function_calling' },
      // The answer would be billed, but stay at the vendor.
      deferred: 'refuse',
      // Answered with 410 for every value.
      search_parameters: 'refuse',
    },
    byModel: [
      // These models reason and reject an effort (https://github.com/BerriAI/litellm/pull/16265, and of grok-4.20
      // https://github.com/chenyme/grok2api/issues/814).
      [
        /^grok-(?:4(?!\.[3-9]|.*(?:non-reasoning|multi-agent))|code)/,
        {
          fields: {
            stop: 'refuse',
            presence_penalty: 'drop',
            frequency_penalty: 'drop',
            reasoning_effort: 'drop',
          },
        },
      ],
      [
        /^grok-(?:3-mini|4(?!.*non-reasoning)|code)/,
        { fields: { stop: 'refuse', presence_penalty: 'drop', frequency_penalty: 'drop' } },
      ],
    ],
    errors: {
      messages: [
        [/\bviolates usage guidelines\b/i, 'caller'],
        // 400 and 429, with codes that also have other meanings.
        [
          /^incorrect API key\b|^your team\b.{0,200}\b(?:used all available credits|monthly spending limit)\b/i,
          'operator',
        ],
      ],
      concernMessages: [[/^incorrect API key\b/i, 'key']],
    },
  },
  moonshot: {
    id: 'moonshot',
    claims: ['kimi-*', 'moonshot-*'],
    name: 'Moonshot AI',
    baseURL: 'https://api.moonshot.ai/v1',
    keyVariables: ['MOONSHOT_API_KEY'],
    needsKey: true,
    serves: ['chat'],
    fields: { max_completion_tokens: MAX_TOKENS_RULE, seed: 'drop' },
    reasoning: { back: 'tool-calls', as: 'reasoning_content', evenEmpty: true },
    typedBranches: true,
    takesImageUrls: false,
    errors: {
      codes: {
        exceeded_current_quota_error: 'operator',
        engine_overloaded_error: 'unavailable',
        rate_limit_reached_error: 'rate_limited',
        // "Not found the model … or Permission denied"
        resource_not_found_error: 'operator',
        content_filter: 'caller',
      },
      concerns: { exceeded_current_quota_error: 'key' },
    },
  },
  zai: {
    id: 'zai',
    claims: ['glm-*'],
    name: 'Z.ai',
    baseURL: 'https://api.z.ai/api/paas/v4',
    keyVariables: ['ZAI_API_KEY', 'ZHIPU_API_KEY'],
    needsKey: true,
    serves: ['chat'],
    fields: { max_completion_tokens: MAX_TOKENS_RULE },
    reasoning: { back: 'always', as: 'reasoning_content' },
    errors: {
      codes: {
        1000: 'operator',
        1001: 'operator',
        1002: 'operator',
        1003: 'operator',
        1004: 'operator',
        // The account is inactive, missing, locked, in debt, or in violation.
        1110: 'operator',
        1111: 'operator',
        1112: 'operator',
        1113: 'operator',
        1121: 'operator',
        1211: 'operator',
        1220: 'operator',
        1221: 'operator',
        1222: 'operator',
        1301: 'caller',
        1302: 'rate_limited',
        1303: 'rate_limited',
        1305: 'rate_limited',
        // The quota of a day, hours, a week or a month is used up; the plan has ended, or lacks the model.
        1304: 'operator',
        1308: 'operator',
        1309: 'operator',
        1310: 'operator',
        1311: 'operator',
      },
      // 434: the account may not use the API. 435: the file is too large.
      statuses: { 434: 'operator', 435: 'caller' },
      concerns: {
        ...{ 1110: 'key', 1111: 'key', 1112: 'key', 1113: 'key', 1121: 'key' },
        ...{ 1211: 'model', 1220: 'model', 1221: 'model', 1222: 'model', 1311: 'model' },
      },
    },
  },
  minimax: {
    id: 'minimax',
    claims: ['MiniMax-*'],
    name: 'MiniMax',
    baseURL: 'https://api.minimax.io/v1',
    keyVariables: ['MINIMAX_API_KEY'],
    needsKey: true,
    serves: ['chat'],
    // With it, chunks repeat all reasoning so far.
    fields: { max_completion_tokens: MAX_TOKENS_RULE, reasoning_split: 'drop' },
    thinksInTags: true,
    errors: {
      // Errors with a status have the code only after the text: "insufficient balance (1008)".
      messages: [
        [/\((?:1004|1008|2049|2056|2061)\)$/, 'operator'],
        // 2013 covers every invalid request. The model id is not the caller's.
        [/^invalid params, unknown model '[^']{1,200}'/, 'operator'],
        [/\((?:1002|1039|1041|2045|2062)\)$/, 'rate_limited'],
      ],
      concernMessages: [
        [/\((?:1004|1008|2049|2056)\)$/, 'key'],
        [/\(2061\)$|^invalid params, unknown model '/, 'model'],
      ],
      codes: {
        1000: 'unavailable',
        1001: 'timeout',
        1002: 'rate_limited',
        1004: 'operator',
        1008: 'operator',
        1013: 'unavailable',
        1024: 'unavailable',
        1026: 'caller',
        1027: 'caller',
        1033: 'unavailable',
        1039: 'rate_limited',
        1041: 'rate_limited',
        1042: 'caller',
        2013: 'caller',
        2045: 'rate_limited',
        2049: 'operator',
        2056: 'operator',
        2061: 'operator',
        2062: 'rate_limited',
      },
      concerns: { 1004: 'key', 1008: 'key', 2049: 'key', 2056: 'key', 2061: 'model' },
    },
  },
  jina: {
    id: 'jina',
    claims: ['jina-*'],
    name: 'Jina AI',
    baseURL: 'https://api.jina.ai/v1',
    keyVariables: ['JINA_API_KEY'],
    needsKey: true,
    serves: ['rerank'],
  },
  perplexity: {
    id: 'perplexity',
    claims: ['sonar*'],
    name: 'Perplexity',
    baseURL: 'https://api.perplexity.ai/v1',
    keyVariables: ['PERPLEXITY_API_KEY'],
    needsKey: true,
    // `/responses` is an alias of `/agent` (Perplexity, "OpenAI Compatibility" of the Agent API). Chat completions have ended.
    serves: ['responses', 'embeddings'],
    // Other members let models answer and tools run that the request does not name.
    responses: { fields: { models: 'refuse', preset: 'refuse' } },
    // Perplexity has two encodings, neither of them OpenAI's (Perplexity, "Embeddings").
    embeddings: { takesTokens: false, givesSignedBytes: true },
  },
} as const satisfies Readonly<Record<string, Preset>>

/** `max_tokens` limits the reply without its chain of thought; the budget is 128 to 32,768 (SiliconFlow, "Reasoning Models"). */
const SHARED_BOUND: PresetRule = { thinkingBudget: { min: 128, max: 32_768 } }

/** Models at SiliconFlow that think, always or by default. */
const SILICONFLOW_THINKERS =
  /qwen3(?!.*(?:instruct|coder))|thinking|qwq|qwenlong|deepseek-(?:r1|v3\.[1-9]|v4)|glm-(?:z1|4\.[5-9]|5)|hunyuan-a13b|hy3|minimax-m|kimi-k2\.[5-9]|gpt-oss|step-3/i

/** Members of OpenAI's API that clients send and that do not affect the answer. */
const BOOKKEEPING = {
  store: 'drop',
  metadata: 'drop',
  user: 'drop',
  safety_identifier: 'drop',
  service_tier: 'drop',
  prompt_cache_key: 'drop',
  prompt_cache_retention: 'drop',
  verbosity: 'drop',
} as const satisfies Readonly<Record<string, PresetRule>>

/** Bookkeeping members that strict servers reject, although they know the others. */
const UNKNOWN_TO_HOSTS = {
  store: 'drop',
  safety_identifier: 'drop',
  prompt_cache_retention: 'drop',
  verbosity: 'drop',
} as const satisfies Readonly<Record<string, PresetRule>>

/** Members that let other models answer, past the prices and the scopes of keys (OpenRouter, "Model fallbacks", "Presets"). */
const OTHER_MODELS = { models: 'refuse', preset: 'refuse' } as const satisfies Readonly<Record<string, PresetRule>>

/** Rules of chats and Responses. OpenRouter groups requests by the session. */
const OPENROUTER_FIELDS = { ...OTHER_MODELS, session_id: 'pass' } as const satisfies Readonly<
  Record<string, PresetRule>
>

/** Companies that serve models of others. */
const HOST_PRESETS = {
  groq: {
    id: 'groq',
    name: 'Groq',
    baseURL: 'https://api.groq.com/openai/v1',
    keyVariables: ['GROQ_API_KEY'],
    needsKey: true,
    serves: ['chat', 'responses', 'transcriptions'],
    fields: {
      max_completion_tokens: MAX_TOKENS_RULE,
      ...UNKNOWN_TO_HOSTS,
      metadata: 'drop',
      prompt_cache_key: 'drop',
      logprobs: 'refuse',
      top_logprobs: 'refuse',
      logit_bias: 'refuse',
      n: { atMost: 1 },
    },
    reasoning: { back: 'always', as: 'reasoning' },
    messageMembers: ['role', 'content', 'tool_calls', 'tool_call_id', 'reasoning'],
    // Unsupported features are answered with 400 (Groq, "Responses API").
    responses: {
      fields: {
        store: 'drop',
        truncation: 'drop',
        include: 'drop',
        safety_identifier: 'drop',
        prompt_cache_key: 'drop',
      },
    },
    errors: {
      codes: { organization_restricted: 'operator' },
      // The flex tier has no capacity.
      statuses: { 498: 'unavailable' },
      concerns: { organization_restricted: 'key' },
      // The answer was generated, but is not a tool call, or not JSON that follows the schema.
      billed: ['tool_use_failed', 'json_validate_failed'],
    },
  },
  together: {
    id: 'together',
    name: 'Together AI',
    baseURL: 'https://api.together.xyz/v1',
    keyVariables: ['TOGETHER_API_KEY'],
    needsKey: true,
    serves: ['chat', 'embeddings', 'images', 'completions'],
    embeddings: { fields: { user: 'drop' } },
    // It ignores a suffix.
    completions: { takesLists: false, fields: { suffix: 'refuse', best_of: { atMost: 1 } } },
    fields: { max_completion_tokens: MAX_TOKENS_RULE },
  },
  fireworks: {
    id: 'fireworks',
    name: 'Fireworks AI',
    baseURL: 'https://api.fireworks.ai/inference/v1',
    keyVariables: ['FIREWORKS_API_KEY'],
    needsKey: true,
    serves: ['chat', 'embeddings', 'completions'],
    fields: {
      max_completion_tokens: MAX_TOKENS_RULE,
      // Others are 400 "Extra inputs are not permitted".
      ...UNKNOWN_TO_HOSTS,
      reasoning_effort: { values: { minimal: 'low', xhigh: 'high', max: 'high' } },
    },
    messageMembers: ['role', 'content', 'name', 'tool_calls', 'tool_call_id'],
    errors: {
      // Status for a suspended account: its invoices are unpaid, or its spending limit is reached.
      statuses: { 412: 'operator' },
      concerns: { PRECONDITION_FAILED: 'key' },
    },
  },
  openrouter: {
    id: 'openrouter',
    name: 'OpenRouter',
    baseURL: 'https://openrouter.ai/api/v1',
    keyVariables: ['OPENROUTER_API_KEY'],
    needsKey: true,
    // Stateless: `store: true` is answered with 400 (OpenRouter, "Responses API").
    serves: ['chat', 'responses', 'embeddings'],
    takesDeveloperRole: true,
    fields: OPENROUTER_FIELDS,
    embeddings: { fields: OTHER_MODELS },
    responses: { fields: OPENROUTER_FIELDS },
    errors: {
      messages: [
        // A guardrail of the account also answers 403, which concerns the operator.
        [/\b(?:flagged|moderation)\b/i, 'caller'],
        // Other errors about missing endpoints concern the request, such as its tools or its `provider`.
        [/^[\w./:@~-]+ is not a valid model ID\b|^no endpoints found for\b/i, 'operator'],
      ],
      codes: { content_policy_violation: 'caller', 402: 'operator', 529: 'unavailable' },
    },
  },
  cerebras: {
    id: 'cerebras',
    name: 'Cerebras',
    baseURL: 'https://api.cerebras.ai/v1',
    keyVariables: ['CEREBRAS_API_KEY'],
    needsKey: true,
    serves: ['chat'],
    fields: {
      max_tokens: { rename: 'max_completion_tokens' },
      ...UNKNOWN_TO_HOSTS,
      metadata: 'drop',
    },
    reasoning: { back: 'always', as: 'reasoning' },
    // Other members are answered with 400 "property … is unsupported".
    messageMembers: ['role', 'content', 'name', 'tool_calls', 'tool_call_id', 'reasoning'],
  },
  sambanova: {
    id: 'sambanova',
    name: 'SambaNova',
    baseURL: 'https://api.sambanova.ai/v1',
    keyVariables: ['SAMBANOVA_API_KEY'],
    needsKey: true,
    serves: ['chat', 'embeddings'],
    fields: { max_completion_tokens: MAX_TOKENS_RULE },
    hasFractionalTimes: true,
  },
  siliconflow: {
    id: 'siliconflow',
    name: 'SiliconFlow',
    baseURL: 'https://api.siliconflow.com/v1',
    keyVariables: ['SILICONFLOW_API_KEY'],
    needsKey: true,
    serves: ['chat', 'embeddings', 'rerank'],
    fields: { max_completion_tokens: MAX_TOKENS_RULE },
    byModel: [[SILICONFLOW_THINKERS, { fields: { max_completion_tokens: SHARED_BOUND, max_tokens: SHARED_BOUND } }]],
    errors: {
      codes: { 20012: 'operator', 30001: 'operator' },
      concerns: { 20012: 'model', 30001: 'key' },
    },
  },
  nvidia: {
    id: 'nvidia',
    name: 'NVIDIA NIM',
    baseURL: 'https://integrate.api.nvidia.com/v1',
    keyVariables: ['NVIDIA_API_KEY'],
    needsKey: true,
    serves: ['chat', 'embeddings'],
    fields: { ...BOOKKEEPING, max_completion_tokens: MAX_TOKENS_RULE },
    messageMembers: ['role', 'content', 'name', 'tool_calls', 'tool_call_id'],
    errors: {
      // Matched from the start, because errors quote requests. The id is NVIDIA's.
      messages: [[/^function (?:id )?'[^']*': not found for account\b/i, 'operator']],
      concernMessages: [[/^function (?:id )?'[^']*': not found for account\b/i, 'model']],
    },
  },
  huggingface: {
    id: 'huggingface',
    name: 'Hugging Face',
    baseURL: 'https://router.huggingface.co/v1',
    keyVariables: ['HF_TOKEN'],
    needsKey: true,
    serves: ['chat', 'responses'],
    fields: { max_completion_tokens: MAX_TOKENS_RULE },
  },
  cloudflare: {
    id: 'cloudflare',
    name: 'Cloudflare Workers AI',
    baseURL: 'https://api.cloudflare.com/client/v4/accounts/{account}/ai/v1',
    keyVariables: ['CLOUDFLARE_API_KEY', 'CLOUDFLARE_API_TOKEN'],
    needsKey: true,
    serves: ['chat', 'embeddings'],
    fields: { max_completion_tokens: MAX_TOKENS_RULE },
    errors: {
      // Workers AI, "Errors". The last two concern an address that names no account.
      codes: {
        3036: 'operator',
        3042: 'operator',
        4006: 'operator',
        5007: 'operator',
        7000: 'operator',
        7003: 'operator',
      },
      concerns: { 3023: 'key', 3041: 'model', 5016: 'model', 5018: 'model' },
    },
  },
} as const satisfies Readonly<Record<string, Preset>>

/** Servers on a machine of the operator, which need no key. */
const LOCAL_PRESETS = {
  ollama: {
    id: 'ollama',
    name: 'Ollama',
    baseURL: 'http://localhost:11434/v1',
    keyVariables: ['OLLAMA_API_KEY'],
    needsKey: false,
    serves: ['chat', 'embeddings', 'completions'],
    // It ignores `n`, `best_of` and `echo`.
    completions: { takesLists: false, fields: { n: { atMost: 1 }, best_of: { atMost: 1 }, echo: 'refuse' } },
    fields: {
      // It ignores the newer name, and answers without a bound.
      max_completion_tokens: { rename: 'max_tokens' },
      n: { atMost: 1 },
      logit_bias: 'refuse',
      parallel_tool_calls: 'drop',
      user: 'drop',
    },
    reasoning: { back: 'always', as: 'reasoning' },
    toolChoice: { isIgnored: true },
    takesImageUrls: false,
    embeddings: { takesTokens: false },
  },
  vllm: {
    id: 'vllm',
    name: 'vLLM',
    baseURL: 'http://localhost:8000/v1',
    keyVariables: ['VLLM_API_KEY'],
    needsKey: false,
    // It keeps answers in its memory, and only if it was started so.
    serves: ['chat', 'responses', 'embeddings', 'rerank', 'transcriptions', 'completions'],
  },
  lmstudio: {
    id: 'lmstudio',
    name: 'LM Studio',
    baseURL: 'http://127.0.0.1:1234/v1',
    keyVariables: ['LMSTUDIO_API_KEY'],
    needsKey: false,
    // It keeps answers until it ends, and has no call that deletes one, so the gateway keeps them.
    serves: ['chat', 'responses', 'embeddings', 'completions'],
    completions: { takesLists: false, fields: { n: { atMost: 1 }, best_of: { atMost: 1 } } },
    fields: { max_completion_tokens: { rename: 'max_tokens' }, n: { atMost: 1 }, user: 'drop' },
    toolChoice: { cutsNamed: true },
    takesImageUrls: false,
  },
  llamacpp: {
    id: 'llamacpp',
    name: 'llama.cpp',
    baseURL: 'http://127.0.0.1:8080/v1',
    keyVariables: ['LLAMACPP_API_KEY'],
    needsKey: false,
    serves: ['chat', 'embeddings', 'rerank', 'completions'],
    // 400 "Unsupported param", also where the value changes nothing.
    completions: { fields: { suffix: 'refuse', best_of: 'refuse', echo: 'refuse', n: { atMost: 1 } } },
    // `n_predict` replaces the bound of the request.
    fields: { max_completion_tokens: { rename: 'max_tokens' }, n_predict: 'refuse' },
    toolChoice: { cutsNamed: true },
  },
} as const satisfies Readonly<Record<string, Preset>>

export type { ErrorWords } from '../shared/openai-error.ts'
export type {
  Preset,
  PresetDialect,
  PresetEndpoint,
  PresetReasoning,
  PresetRule,
  PresetToolChoice,
} from '../shared/preset.ts'

/**
 * Servers of OpenAI's dialect, by name, for `openaiCompatible(presets.groq, { apiKey })`. Survey of 2026-11-22. Presets contain no
 * models and no prices.
 */
export const presets = { ...MODEL_MAKER_PRESETS, ...HOST_PRESETS, ...LOCAL_PRESETS } as const satisfies Readonly<
  Record<string, Preset>
>
