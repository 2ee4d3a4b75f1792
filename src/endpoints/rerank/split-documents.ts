import { Buffer } from 'node:buffer'
import { invalidField, unsupportedField } from '../field-errors.ts'
import { estimateTokens } from '../token-estimate.ts'
import { pictureOf, type RerankRequest, textOfDocument } from './rerank-request.ts'

/** Limits of one call to a vendor. */
export interface RerankLimits {
  /** Maximum number of documents. If omitted, the vendor decides. */
  readonly maxDocuments?: number
  /** Maximum tokens: those of the query once per document, plus those of the documents. If omitted, the vendor decides. */
  readonly maxTokens?: number
  /** Tokens to which the vendor truncates a longer text, if known. */
  readonly maxTextTokens?: number
  /** Maximum number of images. If omitted, images are rejected. */
  readonly maxPictures?: number
  /**
   * Whether each document is scored separately, so that a longer list may be split and its parts merged by score. Default false:
   * longer lists are rejected.
   */
  readonly isPointwise?: boolean
}

/** A part of the documents, and the position where it begins. */
export interface RerankPart {
  readonly start: number
  readonly request: RerankRequest
}

/** Maximum calls per request, so that a list of long texts does not become thousands. */
const MAX_PARTS = 100

/**
 * Splits the documents into parts that the vendor accepts, if each is scored separately. The token estimate is an upper bound, so
 * parts may be smaller than possible. A document that is too long is a part of its own: most vendors truncate it.
 * @throws GatewayError `invalid_request` if a model that compares documents gets more documents, or certainly more tokens, than its
 *   limit, for too many images, and for a list that needs too many calls; `unsupported_parameter` for an image at a model that
 *   ranks only texts.
 */
export function splitDocuments(request: RerankRequest, limits: RerankLimits): RerankPart[] {
  const { documents, query } = request
  const { maxDocuments = documents.length, maxTokens = Number.POSITIVE_INFINITY, isPointwise = false } = limits
  checkPictures(request, limits)
  if (!isPointwise) {
    checkWhole(request, limits)
    return [{ start: 0, request }]
  }
  const queryTokens = estimateTokens(Buffer.byteLength(query))
  const starts = [0]
  let [start, tokens] = [0, 0]
  for (const [index, document] of documents.entries()) {
    const added = queryTokens + estimateTokens(Buffer.byteLength(textOfDocument(document)))
    if (index > start && (index - start === maxDocuments || tokens + added > maxTokens)) {
      starts.push(index)
      start = index
      tokens = 0
    }
    tokens += added
  }
  if (starts.length === 1) return [{ start: 0, request }]
  if (starts.length > MAX_PARTS)
    throw invalidField('documents', `would become ${starts.length} calls at this model; ${MAX_PARTS} are allowed`)
  return starts.map((first, position) => ({
    start: first,
    request: { ...request, documents: documents.slice(first, starts[position + 1]) },
  }))
}

function checkPictures({ documents }: RerankRequest, { maxPictures }: RerankLimits): void {
  const pictures = documents.flatMap((document, index) => (pictureOf(document) === undefined ? [] : [index]))
  const [first] = pictures
  if (first === undefined) return
  if (maxPictures === undefined) throw unsupportedField(`documents[${first}].image`, 'this model ranks only texts')
  if (pictures.length > maxPictures) throw invalidField('documents', `this model accepts at most ${maxPictures} images`)
}

function checkWhole(request: RerankRequest, limits: RerankLimits): void {
  const { documents, query } = request
  const { maxDocuments, maxTokens, maxTextTokens = Number.POSITIVE_INFINITY } = limits
  if (maxDocuments !== undefined && documents.length > maxDocuments)
    throw invalidField('documents', `this model accepts at most ${maxDocuments} documents`)
  if (maxTokens === undefined) return
  let tokens = Math.min(fewestTokens(query), maxTextTokens) * documents.length
  for (const document of documents) tokens += Math.min(fewestTokens(textOfDocument(document)), maxTextTokens)
  if (tokens > maxTokens)
    throw invalidField(
      'documents',
      `this model accepts at most ${maxTokens} tokens, the query counted once for each document`,
    )
}

/** No language has more letters per token on average. Only runs of blanks have, which are ignored. */
const MOST_LETTERS_PER_TOKEN = 6

/** Returns a lower bound of the tokens of a text: the usual estimate is an upper bound and would reject acceptable lists. */
function fewestTokens(text: string): number {
  return Math.floor(text.replace(/\s+/g, '').length / MOST_LETTERS_PER_TOKEN)
}
