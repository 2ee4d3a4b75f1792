import type { Preset, PresetRule } from '../shared/preset.ts'

const AS_MAX_TOKENS: PresetRule = { rename: 'max_tokens' }

/** Companies that serve their own models. */
export const MODEL_MAKER_PRESETS = {
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
    fields: { max_completion_tokens: AS_MAX_TOKENS, seed: 'drop' },
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
    // Mistral, "Embeddings": members that it does not know are 422.
    embeddings: {
      maxInputs: 256,
      takesTokens: false,
      fields: { dimensions: { rename: 'output_dimension' }, user: 'drop' },
    },
    fields: {
      max_completion_tokens: AS_MAX_TOKENS,
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
    fields: { max_completion_tokens: AS_MAX_TOKENS, seed: 'drop' },
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
    fields: { max_completion_tokens: AS_MAX_TOKENS },
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
    fields: { max_completion_tokens: AS_MAX_TOKENS, reasoning_split: 'drop' },
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
