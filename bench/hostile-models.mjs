/** The catalog and the caller of the hostile gateway. Bodies are in other modules, to keep them out of the gateway's process. */

/** Chat models of every translator, and models of the other kinds, by the id of their vendor's dialect. */
export const CHAT = {
  relayed: ['openai', 'gpt-5.4'],
  responses: ['openai', 'gpt-5.4-pro'],
  claude: ['anthropic', 'claude-sonnet-4-5'],
  gemini: ['gemini', 'gemini-2.5-flash'],
  nova: ['amazon-bedrock', 'amazon.nova-pro-v1:0'],
}
const OTHER = {
  'embedding-openai': ['openai', 'text-embedding-3-small', 'embedding'],
  'embedding-titan': ['amazon-bedrock', 'amazon.titan-embed-text-v2:0', 'embedding'],
  'embedding-cohere': ['cohere', 'embed-v4.0', 'embedding'],
  'rerank-cohere': ['cohere', 'rerank-v3.5', 'rerank'],
  whisper: ['openai', 'whisper-1', 'transcription'],
  moderation: ['openai', 'omni-moderation-latest', 'moderation'],
}

/** Key of the caller. */
export const CALLER_KEY = 'sk-caller-0123456789'

/** Rows of the catalog. */
export const MODELS = [
  ...Object.entries(CHAT).map(([id, [vendor, upstream]]) => ({ id, kind: 'chat', vendor, upstream })),
  ...Object.entries(OTHER).map(([id, [vendor, upstream, kind]]) => ({ id, kind, vendor, upstream })),
]
