// See docs/decisions/0024-rerank-and-moderations.md.

import { Buffer } from 'node:buffer'
import type { Usage } from '../../core/usage.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { DETERMINISTIC_ANSWERS } from '../answer-json.ts'
import { type CallerUrl, defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { invalidField, unsupportedField } from '../field-errors.ts'
import { isInline, type MediaInput } from '../media-input.ts'
import {
  type AnswerBody,
  type ChunkedAnswer,
  jsonBody,
  neverStreams,
  type Operation,
  type VendorCall,
  type WireAnswer,
  type WireRequest,
} from '../operation.ts'
import { checkRequest, jsonSchemaOf } from '../schema.ts'
import { promptTexts } from '../texts.ts'
import { ESTIMATED_BYTES_PER_TOKEN, estimateTokens, partStarts } from '../token-estimate.ts'
import { isWebUrl } from '../web-urls.ts'
import {
  pictureOf,
  type RankedDocuments,
  type RerankDocument,
  type RerankPicture,
  type RerankRequest,
  type RerankResult,
  rerankSchema,
  resultCount,
  textOfDocument,
  withCheckedPictures,
} from './rerank-request.ts'

/** `POST /v1/rerank`: sorts documents by relevance to a query (Cohere API, "Rerank"; the shape that most servers share). */
export const rerankEndpoint = rerankAt('/v1/rerank')

/** `POST /v2/rerank`, the path that clients of version 2 of Cohere's API use. */
export const rerankV2Endpoint = rerankAt('/v2/rerank')

function rerankAt(path: string) {
  return defineEndpoint<RerankRequest, RerankOffer>({
    id: 'rerank',
    path,
    kind: 'rerank',
    servesUnlisted: ({ rerank }) => rerank !== undefined,
    errors: openaiErrors,
    parse: (body) => withCheckedPictures(checkRequest<RerankRequest>(rerankSchema(), body)),
    requestSchema: () => jsonSchemaOf(rerankSchema(), 'input'),
    isStream: () => false,
    callerUrls: ({ documents }) => {
      const urls = documents.flatMap((document, index): CallerUrl[] => {
        const picture = pictureOf(document)
        return isWebUrl(picture) ? [{ url: picture, param: `documents[${index}].image` }] : []
      })
      return urls.length === 0 ? undefined : urls
    },
    media: ({ documents }) =>
      documents.flatMap((document): MediaInput[] => {
        const picture = pictureOf(document)
        if (picture === undefined) return []
        return [{ kind: 'image', ...(isInline(picture) ? { data: picture } : {}) }]
      }),
    textBytes: rerankTextBytes,
    estimate: rerankEstimate,
    texts: promptTexts({
      kinds: { query: 'text', documents: 'text' },
      // Every string of an object is text: an object without `text` is ranked by all of them.
      kindOf: (_name, holder) => (pictureOf(holder) === undefined ? 'text' : undefined),
      last: ['query', 'documents'],
      open: ['documents'],
    }),
    createOperation: ({ rerank }, call) => rerank && createRerankOperation(rerank, call),
    cached: DETERMINISTIC_ANSWERS,
  })
}

/** The documents of one call to a vendor. */
export interface RerankInput {
  /** Texts, and images if the limits of the model allow them. */
  readonly documents: readonly (string | RerankPicture)[]
  /** Number of results, at most the number of documents. `undefined` for all. */
  readonly topN: number | undefined
}

/** Reranking at one vendor. All functions are pure. */
export interface RerankOperation {
  /** Returns the limits of a model, by the vendor's own id. */
  limits(upstream: string): RerankLimits
  /** Writes the call. `input` replaces the documents and `top_n` of the request. */
  toWire(call: VendorCall<RerankRequest>, input: RerankInput): WireRequest
  /** Reads a complete 2xx answer. Returns `undefined` if it is malformed. */
  fromWire(answer: WireAnswer, call: VendorCall<RerankRequest>): RankedDocuments | undefined
}

/** Part of a vendor that handles reranking. */
export interface RerankOffer {
  readonly rerank?: RerankOperation
}

/**
 * Creates the rerank operation of a vendor. Documents are sent as texts and images, and returned as the caller wrote them. The
 * gateway also selects the best results, because some servers ignore the requested number. A list above the vendor's limits is
 * split if the model scores each document separately.
 * @throws GatewayError `invalid_request` for a list above the limits of a model that compares documents with each other,
 *   `unsupported_parameter` for an image at a model that ranks only texts.
 */
export function createRerankOperation(operation: RerankOperation, call: VendorCall<RerankRequest>): Operation {
  const { request } = call
  const parts = splitDocuments(request, operation.limits(call.model.upstream))
  const wanted = resultCount(request)
  return {
    requests: parts.map(({ request: part }) => {
      const documents = part.documents.map(wireDocument)
      return operation.toWire(call, { documents, topN: wanted < documents.length ? wanted : undefined })
    }),
    whole: (answers) => merged(operation, parts, answers, call),
    partialUsage: (answers) => partialUsage(operation, parts, answers, call),
    stream: neverStreams,
  }
}

function wireDocument(document: RerankDocument): string | RerankPicture {
  const image = pictureOf(document)
  return image === undefined ? textOfDocument(document) : { image }
}

function merged(
  operation: RerankOperation,
  parts: readonly RerankPart[],
  answers: readonly ChunkedAnswer[],
  call: VendorCall<RerankRequest>,
): AnswerBody | undefined {
  const read: RankedDocuments[] = []
  const results: RerankResult[] = []
  for (const [position, part] of parts.entries()) {
    const ranked = readAnswer(operation, answers[position], call)
    if (ranked === undefined || !isRanking(ranked.results, part.request)) return undefined
    read.push(ranked)
    for (const { index, relevance_score } of ranked.results)
      results.push({ index: part.start + index, relevance_score })
  }
  // The sort is stable: documents of equal score keep the vendor's order.
  results.sort((one, other) => other.relevance_score - one.relevance_score)
  const usage = summedUsage(read, parts)
  return jsonBody(answerBody(call, read, results, usage), usage)
}

function readAnswer(
  operation: RerankOperation,
  answer: ChunkedAnswer | undefined,
  call: VendorCall<RerankRequest>,
): RankedDocuments | undefined {
  return answer && operation.fromWire({ ...answer, body: joinChunks(answer.chunks) }, call)
}

/**
 * Whether each result names another document of the part with a comparable score, and the number of results is as requested. No
 * vendor documents fewer results, and if a part had fewer, the best of all parts would be unknown.
 */
function isRanking(results: readonly RerankResult[], part: RerankRequest): boolean {
  const seen = new Set<number>()
  for (const { index, relevance_score } of results) {
    if (!Number.isInteger(index) || index < 0 || index >= part.documents.length || !Number.isFinite(relevance_score))
      return false
    seen.add(index)
  }
  return seen.size === results.length && results.length >= resultCount(part)
}

function answerBody(
  call: VendorCall<RerankRequest>,
  read: readonly RankedDocuments[],
  results: readonly RerankResult[],
  usage: Usage | undefined,
): Record<string, unknown> {
  const { request } = call
  const billed = call.billedUsage?.(usage, 0) ?? usage
  const tokens = billed?.inputTokens ?? estimateTokens(rerankTextBytes(request))
  const countsUnits = read.some((ranked) => ranked.usage?.searchUnits !== undefined)
  const shown = results.slice(0, resultCount(request)).map(({ index, relevance_score }) => {
    const document = request.return_documents === true ? request.documents[index] : undefined
    if (document === undefined) return { index, relevance_score }
    return { index, relevance_score, document: typeof document === 'string' ? { text: document } : document }
  })
  return {
    ...(read[0]?.id === undefined ? {} : { id: read[0].id }),
    object: 'list',
    model: call.publicModel,
    [request.top_k === undefined ? 'results' : 'data']: shown,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    ...(countsUnits ? { meta: { billed_units: { search_units: billed?.searchUnits } } } : {}),
  }
}

/** Returns the total usage of the calls, or `undefined` if any of them reported none. */
function summedUsage(read: readonly RankedDocuments[], parts: readonly RerankPart[]): Usage | undefined {
  const reports = parts.map(({ request }, position): PartReport => ({ request, reported: read[position]?.usage }))
  return reports.every(({ reported }) => reported !== undefined) ? usageOfParts(reports) : undefined
}

/** Returns the usage of the answered parts, or `undefined` without any. Parts without a report are estimated. */
function partialUsage(
  operation: RerankOperation,
  parts: readonly RerankPart[],
  answers: readonly (ChunkedAnswer | undefined)[],
  call: VendorCall<RerankRequest>,
): Usage | undefined {
  const reports = parts.flatMap(({ request }, position): PartReport[] => {
    const answer = answers[position]
    return answer === undefined ? [] : [{ request, reported: readAnswer(operation, answer, call)?.usage }]
  })
  return reports.length === 0 ? undefined : usageOfParts(reports)
}

// Documents per search unit, and tokens above which a document is split (Cohere, "How does Cohere's pricing work").
const DOCUMENTS_PER_UNIT = 100
const TOKENS_PER_PIECE = 500
// Default of `max_tokens_per_doc` (Cohere, rerank v2 reference).
const DEFAULT_TOKENS_PER_DOCUMENT = 4096
/** Smallest document limit of any vendor. Each call of a split list is rounded up to whole units. */
const DOCUMENTS_PER_CALL = 500

type RankedTexts = Pick<RerankRequest, 'query' | 'documents' | 'max_tokens_per_doc'>

/**
 * Returns the bytes of text that a vendor reads: the query once per document, and the documents. Each reading of the query is
 * rounded up to whole tokens.
 */
function rerankTextBytes({ query, documents }: RankedTexts): number {
  const queryBytes = estimateTokens(Buffer.byteLength(query)) * ESTIMATED_BYTES_PER_TOKEN
  let bytes = queryBytes * documents.length
  for (const document of documents) bytes += Buffer.byteLength(textOfDocument(document))
  return bytes
}

/**
 * Returns search units as vendors count them: one per 100 documents. A document that exceeds 500 tokens together with the query
 * counts as several. A lower `max_tokens_per_doc` is ignored: many vendors never receive it, and the others report their own count.
 */
export function searchUnits({ query, documents, max_tokens_per_doc }: RankedTexts): number {
  const queryTokens = estimateTokens(Buffer.byteLength(query))
  const mostTokens = Math.max(max_tokens_per_doc ?? 0, DEFAULT_TOKENS_PER_DOCUMENT)
  let pieces = 0
  for (const document of documents) {
    const tokens = Math.min(estimateTokens(Buffer.byteLength(textOfDocument(document))), mostTokens)
    pieces += Math.ceil((queryTokens + tokens) / TOKENS_PER_PIECE)
  }
  return Math.ceil(pieces / DOCUMENTS_PER_UNIT)
}

/** Usage of a rerank call. It has both counts, so that a model can be priced by either. */
export interface RerankUsage extends Usage {
  readonly inputTokens: number
  readonly outputTokens: 0
  /** Omitted if no document is an image. */
  readonly inputImageTokens?: number
  readonly searchUnits: number
}

/** Returns the usage to hold for a request, and to charge if its vendor reports nothing. */
export function rerankEstimate(
  request: RankedTexts,
  inputTokens = estimateTokens(rerankTextBytes(request)),
): RerankUsage {
  const furtherCalls = Math.ceil(request.documents.length / DOCUMENTS_PER_CALL) - 1
  return { inputTokens, outputTokens: 0, searchUnits: searchUnits(request) + furtherCalls }
}

/** A vendor's report on the documents of one call, if any. */
interface PartReport {
  readonly request: RankedTexts
  readonly reported: RankedDocuments['usage']
}

/**
 * Adds up the reports of all calls of one request and adds the missing count: vendors report tokens or search units. Units are
 * counted for all documents together, so that they do not depend on the split. If a vendor does not report image tokens separately,
 * they are the tokens above the estimate of the texts.
 */
function usageOfParts(parts: readonly PartReport[]): RerankUsage {
  let [inputTokens, units] = [0, 0]
  let inputImageTokens: number | undefined
  const uncounted: RerankDocument[] = []
  for (const { request, reported } of parts) {
    const textTokens = estimateTokens(rerankTextBytes(request))
    const total = reported?.inputTokens ?? textTokens
    inputTokens += total
    if (request.documents.some((document) => pictureOf(document) !== undefined))
      inputImageTokens = (inputImageTokens ?? 0) + (reported?.inputImageTokens ?? Math.max(0, total - textTokens))
    if (reported?.searchUnits === undefined) uncounted.push(...request.documents)
    else units += reported.searchUnits
  }
  const [first] = parts
  if (first !== undefined && uncounted.length > 0) units += searchUnits({ ...first.request, documents: uncounted })
  return {
    inputTokens,
    outputTokens: 0,
    ...(inputImageTokens === undefined ? {} : { inputImageTokens }),
    searchUnits: units,
  }
}

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
interface RerankPart {
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
function splitDocuments(request: RerankRequest, limits: RerankLimits): RerankPart[] {
  const { documents, query } = request
  const { maxDocuments = documents.length, maxTokens = Number.POSITIVE_INFINITY, isPointwise = false } = limits
  checkPictures(request, limits)
  if (!isPointwise) {
    checkWhole(request, limits)
    return [{ start: 0, request }]
  }
  const queryTokens = estimateTokens(Buffer.byteLength(query))
  const tokens = documents.map((each) => queryTokens + estimateTokens(Buffer.byteLength(textOfDocument(each))))
  const starts = partStarts(tokens, { maxItems: maxDocuments, maxTokens })
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
const MAX_LETTERS_PER_TOKEN = 6

/** Returns a lower bound of the tokens of a text: the usual estimate is an upper bound and would reject acceptable lists. */
function fewestTokens(text: string): number {
  return Math.floor(text.replace(/\s+/g, '').length / MAX_LETTERS_PER_TOKEN)
}
