import * as z from 'zod'
import { onDemand } from '../../core/on-demand.ts'
import type { Usage } from '../../core/usage.ts'
import { invalidField } from '../field-errors.ts'
import { listOf } from '../schema.ts'
import { isWebUrl } from '../web-urls.ts'

/**
 * A document: a text, or an object with its text as `text`. An object whose only member is `image` is an image; any other object
 * without a text is ranked by its JSON.
 */
export type RerankDocument = string | Readonly<Record<string, unknown>>

/** An image to rank, as an address or a `data:` URL. */
export interface RerankPicture {
  readonly image: string
}

/** A rerank request in the shape of Cohere's API, which other servers share. Unknown fields are passed to servers of that shape. */
export interface RerankRequest {
  model: string
  query: string
  documents: RerankDocument[]
  /** Maximum number of results. By default, or if larger, all documents. */
  top_n?: number | null
  /** Voyage's name of `top_n`. A request with this member, even null, gets its results as `data`, which clients of Voyage read. */
  top_k?: number | null
  /** Whether the results repeat the documents. Default false. */
  return_documents?: boolean | null
  /** Tokens to which the vendor truncates each document, if it supports this. */
  max_tokens_per_doc?: number | null
  [field: string]: unknown
}

/** Rank of one document in a vendor's answer. */
export interface RerankResult {
  /** Position of the document in the sent list. */
  readonly index: number
  /** Relevance; higher is more relevant. Scores of different models cannot be compared. */
  readonly relevance_score: number
}

/** Data that a vendor's translator reads from one answer. */
export interface RankedDocuments {
  readonly id: string | undefined
  readonly results: readonly RerankResult[]
  /** `inputTokens` (with the tokens of images), `searchUnits`, or both; `undefined` if the vendor reported none. */
  readonly usage: Pick<Usage, 'inputTokens' | 'inputImageTokens' | 'searchUnits'> | undefined
}

/** Maximum documents per request. Callers split longer lists themselves. */
export const MAX_RERANK_DOCUMENTS = 10_000

const count = onDemand(() => z.int().min(1))

/** Rules of the rerank request. Unknown fields are passed on. */
export const rerankSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1),
    query: z.string().min(1),
    documents: listOf(z.union([z.string().min(1), z.looseObject({ text: z.string().min(1).optional() })]))
      .min(1)
      .max(MAX_RERANK_DOCUMENTS),
    top_n: count().nullish().describe('most results; all by default'),
    top_k: count().nullish().describe('another name of top_n; the results are then called data'),
    return_documents: z.boolean().nullish(),
    max_tokens_per_doc: count().nullish(),
  }),
)

/** Returns the text that a document is ranked by. Empty for an image. */
export function textOfDocument(document: RerankDocument): string {
  if (typeof document === 'string') return document
  const { text } = document
  if (typeof text === 'string') return text
  return pictureOf(document) === undefined ? JSON.stringify(document) : ''
}

/** Returns the image of an image document, or `undefined` for other documents. */
export function pictureOf(document: RerankDocument): string | undefined {
  if (typeof document === 'string' || typeof document['image'] !== 'string') return undefined
  return Object.keys(document).length === 1 ? document['image'] : undefined
}

/**
 * Returns the request if its images can be read.
 * @throws GatewayError `invalid_request` for an image that is neither an address nor a `data:` URL, or that has other members.
 */
export function withCheckedPictures(request: RerankRequest): RerankRequest {
  for (const [index, document] of request.documents.entries()) {
    const picture = pictureOf(document)
    const isData = typeof document === 'object' && document['text'] === undefined && isPictureData(document['image'])
    if (picture === undefined && isData) throw invalidField(`documents[${index}].image`, 'must be the only member')
    if (picture !== undefined && !isData && !isWebUrl(picture))
      throw invalidField(`documents[${index}].image`, 'must be an http(s) URL, or data:image/…;base64,…')
  }
  return request
}

function isPictureData(value: unknown): boolean {
  return typeof value === 'string' && /^data:image\/[a-z0-9.+-]+;base64,./i.test(value.slice(0, 100))
}

/** Returns the number of requested results, at most the number of documents. */
export function resultCount({ top_n, top_k, documents }: RerankRequest): number {
  return Math.min(top_n ?? top_k ?? documents.length, documents.length)
}
