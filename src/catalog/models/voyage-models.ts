import type { ModelDefinition } from '../model.ts'

/** Embedding models of Voyage (API specification, "Embedding request and response"). `contextTokens` holds for one text. */
export const VOYAGE_EMBEDDING_MODELS: readonly ModelDefinition[] = [
  embeddingModel('4-large', 'Voyage 4 Large'),
  embeddingModel('4', 'Voyage 4'),
  embeddingModel('4-lite', 'Voyage 4 Lite'),
]

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
      // The specification lists the sizes as closed, so no other size is made by cutting.
      truncatesDimensions: false,
    },
    displayName,
  }
}
