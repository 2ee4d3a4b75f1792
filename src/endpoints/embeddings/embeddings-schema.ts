import { z } from 'zod'
import { listOf } from '../list-of.ts'

/** Most inputs of one request; longer batches are for the caller to cut. */
export const MAX_EMBEDDING_INPUTS = 10_000

const text = z.string().min(1)
const tokens = listOf(z.int().min(0)).min(1)

/** Rules of the embedding request; unknown fields pass. */
export const embeddingsSchema = z.looseObject({
  model: z.string().min(1),
  input: z.union([
    text,
    listOf(text).min(1).max(MAX_EMBEDDING_INPUTS),
    tokens,
    listOf(tokens).min(1).max(MAX_EMBEDDING_INPUTS),
  ]),
  encoding_format: z.enum(['float', 'base64']).nullish(),
  dimensions: z.int().min(1).max(65_536).nullish(),
  user: z.string().nullish(),
})
