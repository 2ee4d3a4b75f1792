import { Buffer } from 'node:buffer'
import { endOfTurn } from '../../core/calls-in-flight.ts'
import { GatewayError } from '../../core/errors.ts'
import { type ExactMembers, parseExactJson, readExactCallerJson } from '../../core/exact-json.ts'
import { isJsonObject } from '../../core/json.ts'
import type { NativeCall } from '../../endpoints/batches.ts'
import type { BatchSettings, PipelineContext } from '../../pipeline/pipeline-context.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { type CalledVendor, ownRequest } from '../call-vendor.ts'
import { Download, DownloadError } from '../download.ts'

/** Fault of one line, in the format that callers read (OpenAI API reference, "The batch object", `errors.data`). */
export interface LineFault {
  readonly code: string
  /** Number of the line, counted from 1, or `null` if the fault concerns the whole file. */
  readonly line: number | null
  readonly message: string
  readonly param: string | null
}

/** Request of a batch in the caller's own form. */
export interface WrittenRequest {
  readonly customId: string
  readonly body: unknown
}

const NEWLINE = 0x0a
const MAX_CUSTOM_ID = 512

/** Number of lines per turn of the event loop. Stores deliver chunks without such a turn, and a blank line may have only one byte. */
const LINES_PER_TURN = 200

/** Placeholder for a line above the size limit. */
export const TOO_LONG = Symbol('a line that is too long')

/**
 * Yields the lines of a text without line ends, blank lines included. A line above the limit becomes {@link TOO_LONG}, without
 * its bytes.
 */
export async function* linesOf(
  content: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncIterable<Uint8Array | typeof TOO_LONG> {
  let parts: Uint8Array[] = []
  let byteLength = 0
  let given = 0
  const line = (): Uint8Array | typeof TOO_LONG => (byteLength > maxBytes ? TOO_LONG : joinChunks(parts))
  for await (const piece of content) {
    let start = 0
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, start)) {
      parts.push(piece.subarray(start, end))
      byteLength += end - start
      yield line()
      if (++given % LINES_PER_TURN === 0) await endOfTurn()
      parts = []
      byteLength = 0
      start = end + 1
    }
    if (start === piece.byteLength) continue
    byteLength += piece.byteLength - start
    // The bytes of an oversized line are not kept.
    if (byteLength <= maxBytes) parts.push(piece.slice(start))
    else parts = []
  }
  if (byteLength > 0) yield line()
}

/** Bodies are serialized again with the caller's digits. */
export const EXACT_BODY: ExactMembers = new Map([['body', 'text']])

/**
 * Reads a line of an input file.
 * @returns `undefined` for a blank line.
 */
export function readLine(
  bytes: Uint8Array | typeof TOO_LONG,
  line: number,
  { endpoint, maxBytes }: { readonly endpoint: string; readonly maxBytes: number },
): WrittenRequest | LineFault | undefined {
  if (bytes === TOO_LONG)
    return { code: 'line_too_long', line, message: `The line has more than ${maxBytes} bytes.`, param: null }
  if (bytes.byteLength === 0) return undefined
  if (Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1').trim() === '') return undefined
  let value: unknown
  try {
    value = readExactCallerJson(bytes, EXACT_BODY).value
  } catch (error) {
    const isNoJson = !GatewayError.isInstance(error) || error.code === 'invalid_json'
    const fault = isNoJson ? 'is not parseable as valid JSON' : 'cannot be taken'
    const message = `This line ${fault}. ${error instanceof Error ? error.message : ''}`
    return { code: 'invalid_json_line', line, message, param: null }
  }
  if (!isJsonObject(value))
    return { code: 'invalid_json_line', line, message: 'This line is not a JSON object.', param: null }
  const { custom_id: customId, method, url, body } = value
  const fault = (code: string, param: string, message: string): LineFault => ({
    code,
    line,
    message: `${param}: ${message}`,
    param,
  })
  if (typeof customId !== 'string' || customId === '' || customId.length > MAX_CUSTOM_ID)
    return fault('invalid_custom_id', 'custom_id', `expected a string of 1 to ${MAX_CUSTOM_ID} characters`)
  if (method !== 'POST') return fault('invalid_method', 'method', 'must be POST')
  if (url !== endpoint) return fault('invalid_url', 'url', `must be ${endpoint}, the endpoint of the batch`)
  if (!isJsonObject(body)) return fault('invalid_request', 'body', 'expected an object')
  return { customId, body }
}

/** Maximum length of a line of results: an answer with images or many vectors. */
const MAX_LINE_BYTES = 128 * 1024 * 1024

/** Idle timeout of a vendor that sends results, in milliseconds. */
const SILENCE_MS = 60_000

/** Thrown if the results of a vendor cannot be read now, or ended too early. */
export class ResultsUnreadable extends Error {}

/**
 * Yields the lines of a result file at a vendor, read on demand.
 * @throws ResultsUnreadable
 */
export async function* resultLines(
  context: PipelineContext,
  { vendor, credentials }: CalledVendor,
  { method, path, headers }: NativeCall,
): AsyncIterable<string> {
  const credential = await credentials?.take()
  const download = new Download()
  const call = { method, path, headers, timeoutMs: SILENCE_MS }
  download.begin(context.transport.send(ownRequest(context, vendor, call, credential), download))
  context.taskCalls.add(download)
  try {
    const { status } = await download.head()
    if (status === 401 && credential !== undefined) credentials?.invalidate(credential)
    if (status !== 200) throw new ResultsUnreadable(`the vendor answered ${status}`)
    for await (const line of linesOf(download, MAX_LINE_BYTES)) {
      if (line === TOO_LONG) throw new ResultsUnreadable('a line of the results is too long')
      yield Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString()
    }
  } catch (error) {
    throw error instanceof DownloadError ? new ResultsUnreadable(error.message, { cause: error }) : error
  } finally {
    context.taskCalls.delete(download)
    download.abort()
  }
}

/** Request of a batch in the form that is run: one line of the batch's plan. */
export interface PlannedRequest {
  readonly id: string
  readonly body: unknown
  /** Name of its price in the prices of the batch. If omitted, nothing is charged. */
  readonly price?: string
  /**
   * Costs at three output limits, in nano-dollars: shortest, usual, longest. One value if the request sets a limit. If omitted,
   * the request is free.
   */
  readonly costs?: readonly string[]
}

/** Yields the requests of a batch in order, counted from 0. */
export async function* plannedRequests(
  { blobs }: BatchSettings,
  batchId: string,
): AsyncIterable<{ readonly line: number; readonly planned: PlannedRequest }> {
  const plan = await blobs.get(planId(batchId))
  if (plan === undefined) throw new Error(`the requests of the batch ${batchId} are gone`)
  let line = 0
  for await (const bytes of linesOf(plan.content, Number.MAX_SAFE_INTEGER)) {
    if (bytes === TOO_LONG) continue
    yield { line: line++, planned: parseExactJson(Buffer.from(bytes).toString(), EXACT_BODY) as PlannedRequest }
  }
}

/** Name of the file with the planned requests. */
export function planId(batchId: string): string {
  return `${batchId}_plan`
}

/** Id under which the steps of a batch are stored. */
export function journalId(batchId: string): string {
  return `${batchId}_native`
}

/** Id of the file with the lines for the vendor. */
export function linesId(batchId: string): string {
  return `${batchId}_lines`
}
