import type { Usage } from '../../core/usage.ts'

/** An embedding request (API specification "Embedding request and response"). */
export interface EmbeddingsRequest {
  model: string
  /** One text, several texts, or token ids where the vendor takes them. */
  input: string | string[] | number[] | number[][]
  /** How vectors come back: JSON numbers (default), or base64 of little-endian float32. */
  encoding_format?: 'float' | 'base64' | null
  /** Size of the vectors; the model's own size when absent. */
  dimensions?: number | null
  user?: string | null
  [field: string]: unknown
}

/** One vector as a vendor gave it: numbers, or base64 of little-endian float32. */
export type EmbeddingVector = readonly number[] | string

/** What a vendor's translator reads from one embedding answer: the vectors in the order of the inputs. */
export interface EmbeddingsResult {
  readonly vectors: readonly EmbeddingVector[]
  readonly usage: Usage | undefined
}
