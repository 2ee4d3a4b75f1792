import { Buffer } from 'node:buffer'
import { endOfTurn } from '../../core/calls-in-flight.ts'
import { GatewayError } from '../../core/errors.ts'
import type { WireRequest } from '../../endpoints/operation.ts'
import type { Ask } from '../../pipeline/completion.ts'
import type { Routed } from '../../pipeline/dispatch.ts'
import type { PipelineContext } from '../../pipeline/pipeline-context.ts'
import { prepareOperation } from '../../pipeline/prepare-operation.ts'
import type { RouteCandidate } from '../../routing/candidate.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { type BatchJob, factsOf, keepOutcome } from './batch-record.ts'
import type { PlannedRequest } from './check-requests.ts'
import { plannedRequests } from './end-batch.ts'
import { linesId, type NativePlan } from './native-vendor.ts'
import { RequestRun } from './request-run.ts'

/** Number of requests that are captured before other work gets a turn of the event loop. */
const CAPTURED_PER_TURN = 20

/** Why a batch cannot go to a vendor's batch API. Its requests become ordinary calls. */
export class NotNative extends Error {}

/** Thrown instead of calling the vendor: only the request was needed. */
const CAPTURED = new GatewayError('upstream_unavailable', { message: 'The request was captured and not sent.' })

/** Input of a capture. */
export interface Capture {
  /** Lines that have an outcome. */
  readonly ended: ReadonlySet<number>
  readonly isStopped: () => boolean
}

/**
 * Runs each request up to its call of a vendor and writes that call as a line for the vendor's batch API, so that the same
 * translators serve single calls and batches. The lines go to the store one by one.
 * @returns `undefined` if the translator has already ended each request.
 * @throws NotNative, GatewayError for a temporary fault, and whatever the stores throw.
 */
export async function captureRequests(job: BatchJob, capture: Capture): Promise<NativePlan | undefined> {
  const lines = new CapturedLines(job, capture)
  const { task } = job
  const blob = { id: linesId(task.id), expiresAtMs: factsOf(task).expiresAtMs + KEPT_MS }
  const byteLength = await job.settings.blobs.put(blob, lines.bytes())
  return lines.planOf(byteLength)
}

/** Lifetime of the lines if their deletion at the end of the batch fails. */
const KEPT_MS = 2 * 24 * 60 * 60_000

/** Returns the id of a request at the vendor. The caller's own id could contain anything. */
export function customIdOf(line: number): string {
  return `r${line}`
}

/** Returns the line number of an id from {@link customIdOf}, or `undefined` for any other id. */
export function lineOf(customId: string): number | undefined {
  return /^r\d{1,9}$/.test(customId) ? Number(customId.slice(1)) : undefined
}

class CapturedLines {
  readonly #job: BatchJob
  readonly #capture: Capture
  #chosen: { readonly candidate: RouteCandidate; readonly path: string } | undefined
  #requests = 0
  #byteLength = 0

  constructor(job: BatchJob, capture: Capture) {
    this.#job = job
    this.#capture = capture
  }

  planOf(byteLength: number): NativePlan | undefined {
    if (this.#chosen === undefined) return undefined
    const { path, candidate } = this.#chosen
    const { credentialId, model, vendor } = candidate
    const { id, upstream } = model
    return { vendor: vendor.id, credentialId, model: id, upstream, path, requests: this.#requests, byteLength }
  }

  async *bytes(): AsyncIterable<Uint8Array> {
    const { ended, isStopped } = this.#capture
    let turn = 0
    for await (const { line, planned } of plannedRequests(this.#job.settings, this.#job.task.id)) {
      if (ended.has(line)) continue
      if (isStopped()) throw new NotNative('it was stopped')
      if (++turn % CAPTURED_PER_TURN === 0) await endOfTurn()
      const body = await this.#captured(line, planned)
      if (body === undefined) continue
      const { candidate, path } = this.#chosen!
      const { limits, line: lineText } = candidate.vendor.batches!
      const bytes = Buffer.from(`${lineText({ customId: customIdOf(line), path, body })}\n`)
      this.#requests++
      this.#byteLength += bytes.byteLength
      if (
        this.#requests > limits.maxRequests ||
        bytes.byteLength > limits.maxLineBytes ||
        this.#byteLength > limits.maxBytes
      )
        throw new NotNative('it is larger than the vendor accepts')
      yield bytes
    }
  }

  /** Returns the body of a request in the vendor's format, or `undefined` if the request has an outcome now. */
  async #captured(line: number, planned: PlannedRequest): Promise<string | undefined> {
    let body: string | undefined
    let obstacle: NotNative | undefined
    const ask: Ask = async (context, routed) => {
      try {
        body = await this.#bodyOf(context, routed)
      } catch (error) {
        if (error instanceof NotNative) obstacle = error
        else throw error
      }
      throw CAPTURED
    }
    const result = await new RequestRun(this.#job, { planned, line, ask }).run()
    if (obstacle !== undefined) throw obstacle
    if (body !== undefined) return body
    if (result.kind === 'again') throw result.error
    if (result.kind === 'ended') await keepOutcome(this.#job, result.outcome)
    return undefined
  }

  async #bodyOf(context: PipelineContext, routed: Routed): Promise<string> {
    const { call, candidates } = routed
    // A fallback model is not tried before the model itself has failed.
    const able = candidates.filter(
      ({ model, vendor }) => model.id === call.chain[0]?.id && vendor.batches !== undefined,
    )
    const chosen = this.#chosen?.candidate
    const candidate =
      chosen === undefined ? able[0] : able.find(({ key, model }) => key === chosen.key && model.id === chosen.model.id)
    if (candidate === undefined) throw new NotNative('no vendor of the model has a batch API')
    if (call.endpoint.remoteMedia?.(call.body, candidate.vendor, candidate.model) !== undefined)
      throw new NotNative('the vendor accepts only images as bytes')
    const wire = await wireOf(context, { call, candidates }, candidate)
    const body = oneLine(wire.body)
    if (body === undefined || candidate.vendor.batches?.takes(wire) !== true)
      throw new NotNative('the vendor does not accept such requests in a batch')
    this.#chosen ??= { candidate, path: wire.path }
    if (this.#chosen.path !== wire.path) throw new NotNative('its requests have several paths at the vendor')
    return body
  }
}

/** @throws NotNative, and GatewayError of the translator if there is no other vendor. */
async function wireOf(
  context: PipelineContext,
  { call, candidates }: Routed,
  candidate: RouteCandidate,
): Promise<WireRequest> {
  try {
    const { requests } = await prepareOperation(context, call, candidate)
    const [wire] = requests
    if (wire === undefined || requests.length > 1) throw new NotNative('a request of it is several calls at the vendor')
    return wire
  } catch (error) {
    // An ordinary call can be tried at the other vendors.
    const hasOthers = candidates.some(({ vendor }) => vendor !== candidate.vendor)
    throw hasOthers && GatewayError.isInstance(error)
      ? new NotNative('the vendor does not accept a request of it')
      : error
  }
}

/** Returns JSON text in one line, or `undefined` if the body is a form. */
function oneLine(body: WireRequest['body']): string | undefined {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return undefined
  const text = typeof body === 'string' ? body : Buffer.from(joinChunks([body])).toString()
  // JSON strings contain no line breaks, so every line break here is between tokens.
  return text.startsWith('{') ? text.replaceAll(/[\r\n]+/g, ' ') : undefined
}
