import type { Preset, PresetRule } from '../shared/preset.ts'

const AS_MAX_TOKENS: PresetRule = { rename: 'max_tokens' }

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
export const HOST_PRESETS = {
  groq: {
    id: 'groq',
    name: 'Groq',
    baseURL: 'https://api.groq.com/openai/v1',
    keyVariables: ['GROQ_API_KEY'],
    needsKey: true,
    serves: ['chat', 'responses', 'transcriptions'],
    fields: {
      max_completion_tokens: AS_MAX_TOKENS,
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
    fields: { max_completion_tokens: AS_MAX_TOKENS },
  },
  fireworks: {
    id: 'fireworks',
    name: 'Fireworks AI',
    baseURL: 'https://api.fireworks.ai/inference/v1',
    keyVariables: ['FIREWORKS_API_KEY'],
    needsKey: true,
    serves: ['chat', 'embeddings', 'completions'],
    fields: {
      max_completion_tokens: AS_MAX_TOKENS,
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
    fields: { max_completion_tokens: AS_MAX_TOKENS },
    hasFractionalTimes: true,
  },
  siliconflow: {
    id: 'siliconflow',
    name: 'SiliconFlow',
    baseURL: 'https://api.siliconflow.com/v1',
    keyVariables: ['SILICONFLOW_API_KEY'],
    needsKey: true,
    serves: ['chat', 'embeddings', 'rerank'],
    fields: { max_completion_tokens: AS_MAX_TOKENS },
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
    fields: { ...BOOKKEEPING, max_completion_tokens: AS_MAX_TOKENS },
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
    fields: { max_completion_tokens: AS_MAX_TOKENS },
  },
  cloudflare: {
    id: 'cloudflare',
    name: 'Cloudflare Workers AI',
    baseURL: 'https://api.cloudflare.com/client/v4/accounts/{account}/ai/v1',
    keyVariables: ['CLOUDFLARE_API_KEY', 'CLOUDFLARE_API_TOKEN'],
    needsKey: true,
    serves: ['chat', 'embeddings'],
    fields: { max_completion_tokens: AS_MAX_TOKENS },
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
