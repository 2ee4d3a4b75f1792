import type { ModelDefinition } from '../define-model.ts'
import type { ModelLimits } from '../model.ts'

const GEMINI_DIMENSIONS = { dimensions: 3072, nativeDimensions: { min: 128, max: 3072 } }

// The specification lists the sizes of these models as closed, so no other size is made by cutting.
const VOYAGE_LIMITS: ModelLimits = {
  contextTokens: 32_000,
  dimensions: 1024,
  nativeDimensions: [256, 512, 1024, 2048],
  truncatesDimensions: false,
}

/** Embedding models (API specification, "Embedding request and response"). `contextTokens` holds for one text of a batch. */
export const EMBEDDING_MODELS: readonly ModelDefinition[] = [
  {
    id: 'text-embedding-v4',
    kind: 'embedding',
    vendor: 'dashscope',
    limits: { contextTokens: 8192, dimensions: 1024, nativeDimensions: [2048, 1536, 1024, 768, 512, 256, 128, 64] },
    displayName: 'Text Embedding v4',
  },
  {
    id: 'text-embedding-004',
    kind: 'embedding',
    vendor: 'gemini',
    limits: { contextTokens: 2048, dimensions: 768, nativeDimensions: [768] },
    created: Date.UTC(2024, 4, 14) / 1000,
    displayName: 'Text Embedding 004',
  },
  {
    id: 'gmn-embedding-001',
    kind: 'embedding',
    vendor: 'gemini',
    upstream: 'gemini-embedding-001',
    aliases: ['gemini-embedding-001'],
    limits: { contextTokens: 2048, ...GEMINI_DIMENSIONS },
    created: Date.UTC(2025, 6, 14) / 1000,
    displayName: 'Gemini Embedding 001',
  },
  {
    id: 'gmn-embedding-2-preview',
    kind: 'embedding',
    vendor: 'gemini',
    upstream: 'gemini-embedding-2-preview',
    aliases: ['gemini-embedding-2-preview'],
    limits: { contextTokens: 8192, ...GEMINI_DIMENSIONS },
    displayName: 'Gemini Embedding 2 Preview',
  },
  voyageModel('4-large', 'Voyage 4 Large'),
  voyageModel('4', 'Voyage 4'),
  voyageModel('4-lite', 'Voyage 4 Lite'),
]

function voyageModel(version: string, displayName: string): ModelDefinition {
  const upstream = `voyage-${version}`
  return {
    id: `vy-${version}`,
    kind: 'embedding',
    vendor: 'voyage',
    upstream,
    aliases: [upstream],
    limits: VOYAGE_LIMITS,
    displayName,
  }
}
