import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type {
  EmbeddingsRequest,
  EmbeddingsResult,
  EmbeddingVector,
} from '../../endpoints/embeddings/embeddings-request.ts'
import type { VendorCall } from '../vendor.ts'
import { inputCount } from './embedding-vectors.ts'

/**
 * Reads the text of a whole embedding answer, vectors in the order of the inputs. Undefined when it is not an embedding
 * list, or does not hold one vector for each input.
 */
export function readEmbeddings(text: string, call: VendorCall<EmbeddingsRequest>): EmbeddingsResult | undefined {
  const body = parseVendorJson(text)
  if (!isJsonObject(body) || !Array.isArray(body['data'])) return undefined
  const items: unknown[] = body['data']
  if (items.length !== inputCount(call.request.input)) return undefined
  const vectors: EmbeddingVector[] = []
  for (const [position, item] of items.entries()) {
    if (!isJsonObject(item) || !isVector(item['embedding'])) return undefined
    const index = item['index'] ?? position
    if (typeof index !== 'number' || !(index in items) || vectors[index] !== undefined) return undefined
    vectors[index] = item['embedding']
  }
  return { vectors, usage: embeddingsUsage(body['usage']) }
}

/** Reads usage of an embedding answer; servers that count only a total mean the input by it. */
export function embeddingsUsage(value: unknown): Usage | undefined {
  if (!isJsonObject(value)) return undefined
  const tokens = typeof value['prompt_tokens'] === 'number' ? value['prompt_tokens'] : value['total_tokens']
  return typeof tokens === 'number' ? { inputTokens: tokens } : {}
}

function isVector(value: unknown): value is EmbeddingVector {
  return typeof value === 'string' || (Array.isArray(value) && value.every((part) => typeof part === 'number'))
}
