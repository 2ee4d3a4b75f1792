/** One chat model of every vendor that has chat; of Gemini's also the one that always thinks, of OpenAI's one without chat. */
export const CHAT_MODELS = [
  'chat-relayed',
  'chat-pro',
  'chat-qwen',
  'cl-sonnet-4-6',
  'gmn-2.5-flash',
  'gmn-2.5-pro',
] as const

/** One embedding model of every vendor that has embeddings, with the size of its vectors. */
export const EMBEDDING_MODELS = [
  ['embedding-relayed', 1536],
  ['text-embedding-v4', 1024],
  ['gmn-embedding-001', 3072],
  ['vy-4', 1024],
] as const

/** JSON Schema of the arguments of a weather look-up. */
export const CITY_SCHEMA = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const } },
  required: ['city'],
  additionalProperties: false,
}

/** JSON Schema of an answer that is an object with members other than strings. */
export const FORECAST_SCHEMA = {
  type: 'object',
  properties: {
    city: { type: 'string' },
    degrees: { type: 'number' },
    days: { type: 'array', items: { type: 'string', enum: ['sunny', 'rainy'] } },
  },
  required: ['city', 'degrees', 'days'],
  additionalProperties: false,
} as const

/** Answer of the stand-ins to the schema. */
export const FORECAST = { city: 'sample city', degrees: 1.5, days: ['sunny'] } as const
