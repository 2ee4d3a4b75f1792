import { Buffer } from 'node:buffer'
import { invalidField, unsupportedField } from '../field-errors.ts'
import { estimateTokens } from '../token-estimate.ts'
import { pictureOf, type RerankRequest, textOfDocument } from './rerank-request.ts'

/** What a vendor takes in one call. */
export interface RerankLimits {
  /** Most documents; absent: the vendor decides. */
  readonly maxDocuments?: number
  /** Most tokens: those of the query for each document, and those of the documents. Absent: the vendor decides. */
  readonly maxTokens?: number
  /** Tokens to which the vendor cuts a longer text; absent: not known. */
  readonly maxTextTokens?: number
  /** Most pictures among the documents; absent: pictures are refused. */
  readonly maxPictures?: number
  /**
   * Is each document scored by itself, so that a longer list may be split and its parts merged by score? Absent: no, longer lists
   * are refused.
   */
  readonly isPointwise?: boolean
}

/** A part of the documents, and where it begins. */
export interface RerankPart {
  readonly start: number
  readonly request: RerankRequest
}

/** Calls that one request may become, so that a list of long texts does not become thousands. */
const MAX_PARTS = 100

/**
 * The documents in parts that the vendor takes, where each is scored by itself. The tokens of a part are estimated from above, so a
 * part may be smaller than it could be. A document that is too long by itself is a part: most vendors cut it.
 * @throws GatewayError `invalid_request` for more documents, or certainly more tokens, than a model takes that compares documents with
 *   each other, for too many pictures, and for a list that would become too many calls; `unsupported_parameter` for a picture where
 *   a model ranks texts only.
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
  if (maxPictures === undefined) throw unsupportedField(`documents[${first}].image`, 'this model ranks texts only')
  if (pictures.length > maxPictures) throw invalidField('documents', `this model takes at most ${maxPictures} pictures`)
}

function checkWhole(request: RerankRequest, limits: RerankLimits): void {
  const { documents, query } = request
  const { maxDocuments, maxTokens, maxTextTokens = Number.POSITIVE_INFINITY } = limits
  if (maxDocuments !== undefined && documents.length > maxDocuments)
    throw invalidField('documents', `this model takes at most ${maxDocuments} documents`)
  if (maxTokens === undefined) return
  let tokens = Math.min(fewestTokens(query), maxTextTokens) * documents.length
  for (const document of documents) tokens += Math.min(fewestTokens(textOfDocument(document)), maxTextTokens)
  if (tokens > maxTokens)
    throw invalidField(
      'documents',
      `this model takes at most ${maxTokens} tokens, the query counted once for each document`,
    )
}

/** No language has more letters for a token on the average. Only runs of blanks have, which are left out. */
const MOST_LETTERS_PER_TOKEN = 6

/** Tokens of a text from below: by the usual estimate, which is from above, a list that the vendor takes would be refused. */
function fewestTokens(text: string): number {
  return Math.floor(text.replace(/\s+/g, '').length / MOST_LETTERS_PER_TOKEN)
}
