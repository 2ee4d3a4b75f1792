import * as z from 'zod'
import { onDemand } from '../../core/on-demand.ts'
import type { Usage } from '../../core/usage.ts'
import { listOf } from '../schema.ts'

/** An embedding request (API specification "Embedding request and response"). */
export interface EmbeddingsRequest {
  model: string
  /** One text, several texts, or token ids if the vendor supports them. */
  input: string | string[] | number[] | number[][]
  /** Encoding of vectors: JSON numbers (default), or base64 of little-endian float32. */
  encoding_format?: 'float' | 'base64' | null
  /** Size of the vectors. Defaults to the model's own size. */
  dimensions?: number | null
  user?: string | null
  [field: string]: unknown
}

/** One vector as the vendor returned it: numbers, or base64 of little-endian float32. */
export type EmbeddingVector = readonly number[] | string

/** Vectors that a vendor's translator reads from one answer, in the order of the inputs. */
export interface EmbeddingsResult {
  readonly vectors: readonly EmbeddingVector[]
  readonly usage: Usage | undefined
}

/** Maximum inputs per request. Callers split longer batches themselves. */
export const MAX_EMBEDDING_INPUTS = 10_000

const text = onDemand(() => z.string().min(1))
const tokens = onDemand(() => listOf(z.int().min(0)).min(1))

/** Rules of the embedding request. Unknown fields are passed on. */
export const embeddingsSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1),
    input: z.union([
      text(),
      listOf(text(), MAX_EMBEDDING_INPUTS).min(1),
      tokens(),
      listOf(tokens(), MAX_EMBEDDING_INPUTS).min(1),
    ]),
    encoding_format: z.enum(['float', 'base64']).nullish(),
    dimensions: z.int().min(1).max(65_536).nullish(),
    user: z.string().nullish(),
  }),
)
