import type { Usage } from '../../core/usage.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
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
import { estimateTokens } from '../token-estimate.ts'
import {
  pictureOf,
  type RankedDocuments,
  type RerankDocument,
  type RerankPicture,
  type RerankRequest,
  type RerankResult,
  resultCount,
  textOfDocument,
} from './rerank-request.ts'
import { type PartReport, rerankTextBytes, usageOfParts } from './rerank-usage.ts'
import { type RerankLimits, type RerankPart, splitDocuments } from './split-documents.ts'

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
