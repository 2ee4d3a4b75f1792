import type { ModelDefinition } from '../model.ts'

/** Embedding models of Voyage (API specification, "Embedding request and response"). `contextTokens` applies to one text. */
export const VOYAGE_EMBEDDING_MODELS: readonly ModelDefinition[] = [
  embeddingModel('4-large', 'Voyage 4 Large'),
  embeddingModel('4', 'Voyage 4'),
  embeddingModel('4-lite', 'Voyage 4 Lite'),
]

/** Rerank models of Voyage (Voyage, "Rerankers"). `contextTokens` applies to the query with one document. */
export const VOYAGE_RERANK_MODELS: readonly ModelDefinition[] = [
  /* @__PURE__ */ rerankModel('2.5', 'Voyage Rerank 2.5'),
  /* @__PURE__ */ rerankModel('2.5-lite', 'Voyage Rerank 2.5 Lite'),
]

function rerankModel(version: string, displayName: string): ModelDefinition {
  const upstream = `rerank-${version}`
  return {
    id: `vy-rerank-${version}`,
    kind: 'rerank',
    vendor: 'voyage',
    upstream,
    aliases: [upstream],
    limits: { contextTokens: 32_000 },
    displayName,
  }
}

function embeddingModel(version: string, displayName: string): ModelDefinition {
  const upstream = `voyage-${version}`
  return {
    id: `vy-${version}`,
    kind: 'embedding',
    vendor: 'voyage',
    upstream,
    aliases: [upstream],
    limits: {
      contextTokens: 32_000,
      dimensions: 1024,
      nativeDimensions: [256, 512, 1024, 2048],
      // The specification lists all sizes, so vectors are not truncated to other sizes.
      truncatesDimensions: false,
    },
    displayName,
  }
}
