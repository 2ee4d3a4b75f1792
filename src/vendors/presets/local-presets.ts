import type { Preset } from '../shared/preset.ts'

/** Servers on a machine of the operator, which need no key. */
export const LOCAL_PRESETS = {
  ollama: {
    id: 'ollama',
    name: 'Ollama',
    baseURL: 'http://localhost:11434/v1',
    keyVariables: ['OLLAMA_API_KEY'],
    needsKey: false,
    serves: ['chat', 'embeddings'],
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
    // The server stores answers in memory, and only with a start option.
    serves: ['chat', 'responses', 'embeddings', 'rerank', 'transcriptions'],
  },
  lmstudio: {
    id: 'lmstudio',
    name: 'LM Studio',
    baseURL: 'http://127.0.0.1:1234/v1',
    keyVariables: ['LMSTUDIO_API_KEY'],
    needsKey: false,
    // The server stores answers until it ends, and has no call that deletes one, so the gateway stores them.
    serves: ['chat', 'responses', 'embeddings'],
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
    serves: ['chat', 'embeddings', 'rerank'],
    fields: { max_completion_tokens: { rename: 'max_tokens' } },
    toolChoice: { cutsNamed: true },
  },
} as const satisfies Readonly<Record<string, Preset>>
