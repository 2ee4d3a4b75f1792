// See docs/decisions/0029-speed.md.

import { GatewayError } from '../core/errors.ts'
import { isPending } from '../core/maybe-promise.ts'
import type { CompiledHook } from '../hooks/hook-table.ts'
import { admit, admitUnlimited, release } from './admission.ts'
import { authenticate } from './authenticate.ts'
import { throughCache } from './cache/serve-cached.ts'
import type { Admitted, Parsed, ParsedRequest, Received } from './call-record.ts'
import { type Completion, immediate } from './completion.ts'
import { dispatch, route } from './dispatch.ts'
import { estimateFor } from './estimate.ts'
import { runAnswerHooks } from './hooks/answer-hooks.ts'
import {
  answerByHook,
  endDenied,
  type HookedOutcome,
  runRequestHooks,
  type WrittenRequest,
} from './hooks/request-hooks.ts'
import { parse } from './parse.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { type ReserveOutcome, StoredReplay } from './reserve.ts'
import { announce, respondReplay } from './respond.ts'
import { findContinued, recall } from './stored-answers.ts'
import { failedResponse, type Unfinished, type VendorResponse } from './vendor-response.ts'

/** Runs the first stages, which cost nothing and call no vendor. Credentials come before the body. */
export async function readRequest(context: PipelineContext, received: Received): Promise<Parsed> {
  return parse(context, await authenticate(context, received))
}

/** Returns a completion other than the default one on the request's own connection, or `undefined` for the default. */
export type CompletionOf = (parsed: Parsed) => Completion | undefined

/**
 * Runs the stages of every request: authenticate → parse → admit → request hooks → cache → reserve → route → dispatch ⇄ vendor →
 * answer hooks → settle → respond. A JSON response is settled before it is sent; a stream when it has ended, failed or been
 * abandoned; a task by the worker. Each admission is released once, and each hold ends once.
 * @returns The rest of the answer, which must be awaited, or `undefined` if there is none.
 * @throws GatewayError if the caller gets an error.
 */
export async function runStages(
  context: PipelineContext,
  received: Received,
  completionOf: CompletionOf,
): Promise<Unfinished | undefined> {
  const authenticated = authenticate(context, received)
  const parsed = await parse(context, isPending(authenticated) ? await authenticated : authenticated)
  let completion = completionOf(parsed) ?? immediate
  // A request that was accepted earlier and runs now has already passed the hooks.
  const hooks = parsed.answerId === undefined ? context.hooks?.of(parsed.endpoint)?.request : undefined
  const written = hooks && { body: parsed.body, bytes: parsed.bytes }
  if (hasReferences(parsed, completion)) await lookUp(context, parsed, completion)
  const admitted = completion.isUnlimited === true ? admitUnlimited(context, parsed) : await admit(context, parsed)
  if (hooks !== undefined && written !== undefined) {
    const outcome = await askRequestHooks(context, admitted, written, hooks, completionOf)
    if (outcome.answered !== undefined) {
      await answerByHook(context, admitted, outcome.answered)
      return undefined
    }
    completion = outcome.completion ?? completion
  }
  // Cached answers announce the retirement of their model too.
  const retirement = context.retirements.headerFor(context, admitted.chain)
  if (retirement !== undefined) admitted.addHeaders(retirement)
  return context.cache === undefined
    ? await answer(context, admitted, completion)
    : await throughCache(context, admitted, completion === immediate, { completion, proceed: answer })
}

/** Runs the stages of a request. Resolves when the answer has ended. */
export async function runToEnd(
  context: PipelineContext,
  received: Received,
  completionOf: CompletionOf,
): Promise<void> {
  const unfinished = await runStages(context, received, completionOf)
  await unfinished?.end
}

/** Whether {@link lookUp} has something to do. */
function hasReferences({ endpoint }: Parsed, { check }: Completion): boolean {
  return (endpoint.continuation ?? endpoint.kept ?? check ?? endpoint.prepare) !== undefined
}

/** Finds the data that a request refers to, and loads modules that its answer needs. */
async function lookUp(context: PipelineContext, parsed: Parsed, completion: Completion): Promise<void> {
  const { endpoint } = parsed
  if (endpoint.continuation !== undefined) await findContinued(context, parsed)
  if (endpoint.kept !== undefined) await recall(context, parsed)
  if (completion.check !== undefined) await completion.check(context, parsed)
  if (endpoint.prepare !== undefined) await endpoint.prepare(parsed.body)
}

/** Runs the hooks on an admitted request, which may replace it and its completion. Ends the admission if one denies it. */
async function askRequestHooks(
  context: PipelineContext,
  admitted: Admitted,
  written: WrittenRequest,
  hooks: readonly CompiledHook[],
  completionOf: CompletionOf,
): Promise<Pick<HookedOutcome, 'answered'> & { readonly completion?: Completion }> {
  try {
    const { changed, answered } = await runRequestHooks(context, admitted, written, hooks)
    if (changed === undefined) return { answered }
    if (answered === undefined) return { answered, completion: await readmit(context, admitted, changed, completionOf) }
    admitted.parsed(changed)
    return { answered }
  } catch (error) {
    const isDenied = admitted.hookUnits > 0 && GatewayError.isInstance(error) && error.code === 'request_denied'
    if (isDenied) await endDenied(context, admitted, error)
    else await release(context, admitted, 0)
    throw error
  }
}

/** Looks up and estimates a replacement of an admitted request again. */
async function readmit(
  context: PipelineContext,
  admitted: Admitted,
  rewritten: ParsedRequest,
  completionOf: CompletionOf,
): Promise<Completion> {
  const { leases, tokenTakes, requestBucket, tokenBucket } = admitted
  const parsed = admitted.parsed(rewritten)
  const completion = completionOf(parsed) ?? immediate
  await lookUp(context, parsed, completion)
  const estimate = estimateFor(context, parsed, parsed.chain[0]!)
  parsed.admitted({ estimate, leases, tokenTakes, requestBucket, tokenBucket })
  return completion
}

/** Reserves the cost of an admitted request, calls a vendor, and ends both. */
async function answer(
  context: PipelineContext,
  admitted: Admitted,
  completion: Completion,
): Promise<Unfinished | undefined> {
  let reserved: ReserveOutcome
  try {
    reserved = await completion.reserve(context, admitted)
  } catch (error) {
    await release(context, admitted, 0)
    throw error
  }
  if (reserved instanceof StoredReplay) {
    await release(context, admitted, 0)
    if (completion.replay === undefined) respondReplay(admitted.sink, reserved.answer, admitted.requestId)
    else await completion.replay(context, admitted, reserved.answer)
    return undefined
  }
  if (completion.accept !== undefined) {
    await completion.accept(context, reserved)
    return undefined
  }
  if (reserved.endpoint.task === undefined) announce(context, reserved)
  reserved.measuredBy(context.tokenSizes.habitsOf(reserved.chain))
  let response: VendorResponse
  try {
    response = await (completion.ask ?? dispatch)(context, route(context, reserved))
    if (context.hooks !== undefined) response = await runAnswerHooks(context, reserved, response)
  } catch (cause) {
    reserved.calls.abort()
    response = failedResponse(cause)
  }
  return { end: completion.end(context, reserved, response) }
}
