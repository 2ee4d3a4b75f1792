// See docs/decisions/0029-speed.md.

import { GatewayError } from '../core/errors.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { CompiledHook, HookTable } from '../hooks/hook-table.ts'
import type { StoredAnswer } from '../stores/idempotency-store.ts'
import { admit, admitUnlimited, release } from './admission.ts'
import { authenticate } from './authenticate.ts'
import { throughCache } from './cache/through-cache.ts'
import type { Admitted, Parsed, ParsedRequest, Received, Reserved } from './call-record.ts'
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
export function readRequest(context: PipelineContext, received: Received): Promise<Parsed> {
  const authenticated = authenticate(context, received)
  return isPending(authenticated)
    ? Promise.resolve(authenticated.then((known) => parse(context, known)))
    : parse(context, authenticated)
}

/** Returns a completion other than the default one on the request's own connection, or `undefined` for the default. */
export type CompletionOf = (parsed: Parsed) => Completion | undefined

/** Completion of a request, and the function that determines it for a replacement by hooks. */
interface Completing {
  readonly completion: Completion
  readonly completionOf: CompletionOf
}

/**
 * Runs the stages of every request after it is read: admit → request hooks → cache → reserve → route → dispatch ⇄ vendor → answer
 * hooks → settle → respond. A JSON response is settled before it is sent; a stream when it has ended, failed or been abandoned; a
 * task by the worker. Each admission is released once, and each hold ends once.
 *
 * Few stages are `async`, because a waiting function retains all its data while a vendor works.
 * @returns The rest of the answer, which must be awaited, or `undefined` if there is none.
 * @throws GatewayError if the request ends before a vendor is called, or if none answered; also as a rejection.
 */
export function pipeline(
  context: PipelineContext,
  parsed: Parsed,
  completionOf: CompletionOf,
): MaybePromise<Unfinished | undefined> {
  const completion = completionOf(parsed) ?? immediate
  const hooked = context.hooks === undefined ? undefined : hookedRequest(context.hooks, parsed)
  const lookedUp = lookUp(context, parsed, completion)
  if (hooked !== undefined || lookedUp !== undefined)
    return pipelineWithHooks(context, parsed, { completion, completionOf }, { hooked, lookedUp })
  const admission = admitFor(context, parsed, completion)
  return isPending(admission)
    ? admission.then((admitted) => answerThroughCache(context, admitted, completion))
    : answerThroughCache(context, admission, completion)
}

/** Runs the stages for a request with request hooks or references. */
async function pipelineWithHooks(
  context: PipelineContext,
  parsed: Parsed,
  { completion, completionOf }: Completing,
  { hooked, lookedUp }: { readonly hooked: HookedRequest | undefined; readonly lookedUp: Promise<void> | undefined },
): Promise<Unfinished | undefined> {
  await lookedUp
  const admitted = await admitFor(context, parsed, completion)
  const next =
    hooked === undefined ? completion : await askRequestHooks(context, admitted, hooked, { completion, completionOf })
  return next && answerThroughCache(context, admitted, next)
}

function admitFor(context: PipelineContext, parsed: Parsed, { isUnlimited }: Completion): MaybePromise<Admitted> {
  return isUnlimited === true ? admitUnlimited(context, parsed) : admit(context, parsed)
}

/** Answers through the response cache, if any. Cached answers announce the retirement of their model too. */
function answerThroughCache(
  context: PipelineContext,
  admitted: Admitted,
  completion: Completion,
): MaybePromise<Unfinished | undefined> {
  const retirement = context.retirements.headerFor(context, admitted.chain)
  if (retirement !== undefined) admitted.addHeaders(retirement)
  return context.cache === undefined
    ? answer(context, admitted, completion)
    : throughCache(context, admitted, completion === immediate, { completion, proceed: answer })
}

/** Reads a request and runs the {@link pipeline}. Resolves when the answer has ended. */
export async function runToEnd(
  context: PipelineContext,
  received: Received,
  completionOf: CompletionOf,
): Promise<void> {
  const unfinished = await pipeline(context, await readRequest(context, received), completionOf)
  await unfinished?.end
}

/** Finds the data that a request refers to, and loads modules that its answer needs; `undefined` if nothing is needed. */
function lookUp(context: PipelineContext, parsed: Parsed, completion: Completion): Promise<void> | undefined {
  const { continuation, kept, prepare } = parsed.endpoint
  const isContinued = continuation?.of(parsed.body) !== undefined
  const isNeeded = isContinued || kept !== undefined || completion.check !== undefined || prepare !== undefined
  return isNeeded ? lookUpAll(context, parsed, completion) : undefined
}

async function lookUpAll(context: PipelineContext, parsed: Parsed, completion: Completion): Promise<void> {
  const { endpoint } = parsed
  await findContinued(context, parsed)
  if (endpoint.kept !== undefined) await recall(context, parsed)
  if (completion.check !== undefined) await completion.check(context, parsed)
  if (endpoint.prepare !== undefined) await endpoint.prepare(parsed.body)
}

/** Request as its caller wrote it, and its hooks. */
interface HookedRequest {
  readonly written: WrittenRequest
  readonly hooks: readonly CompiledHook[]
}

/** Returns the request and its hooks, or `undefined` without hooks. */
function hookedRequest(table: HookTable, { endpoint, answerId, body, bytes }: Parsed): HookedRequest | undefined {
  // A request that was accepted earlier and runs now has already passed the hooks.
  const hooks = answerId === undefined ? table.of(endpoint)?.request : undefined
  return hooks && { written: { body, bytes }, hooks }
}

/**
 * Runs the hooks on an admitted request, which may replace it and its completion. Returns `undefined` if a hook has answered it.
 */
async function askRequestHooks(
  context: PipelineContext,
  admitted: Admitted,
  { written, hooks }: HookedRequest,
  { completion, completionOf }: Completing,
): Promise<Completion | undefined> {
  let outcome: HookedOutcome
  let next = completion
  try {
    outcome = await runRequestHooks(context, admitted, written, hooks)
    const { changed, answered } = outcome
    if (changed !== undefined && answered !== undefined) admitted.parsed(changed)
    else if (changed !== undefined) next = await readmit(context, admitted, changed, completionOf)
  } catch (error) {
    const isDenied = admitted.hookUnits > 0 && GatewayError.isInstance(error) && error.code === 'request_denied'
    if (isDenied) await endDenied(context, admitted, error)
    else await release(context, admitted, 0)
    throw error
  }
  if (outcome.answered === undefined) return next
  await answerByHook(context, admitted, outcome.answered)
  return undefined
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
function answer(
  context: PipelineContext,
  admitted: Admitted,
  completion: Completion,
): MaybePromise<Unfinished | undefined> {
  let reserving: MaybePromise<ReserveOutcome>
  try {
    reserving = completion.reserve(context, admitted)
  } catch (error) {
    return refuse(context, admitted, error)
  }
  return isPending(reserving)
    ? answerWhenHeld(context, admitted, completion, reserving)
    : answerHeld(context, admitted, completion, reserving)
}

async function answerWhenHeld(
  context: PipelineContext,
  admitted: Admitted,
  completion: Completion,
  reserving: PromiseLike<ReserveOutcome>,
): Promise<Unfinished | undefined> {
  let reserved: ReserveOutcome
  try {
    reserved = await reserving
  } catch (error) {
    return refuse(context, admitted, error)
  }
  return await answerHeld(context, admitted, completion, reserved)
}

async function refuse(context: PipelineContext, admitted: Admitted, error: unknown): Promise<never> {
  await release(context, admitted, 0)
  throw error
}

function answerHeld(
  context: PipelineContext,
  admitted: Admitted,
  completion: Completion,
  reserved: ReserveOutcome,
): MaybePromise<Unfinished | undefined> {
  if (reserved instanceof StoredReplay) return replay(context, admitted, completion, reserved.answer)
  if (completion.accept !== undefined) return completion.accept(context, reserved).then(nothing)
  if (reserved.endpoint.task === undefined) announce(context, reserved)
  reserved.measuredBy(context.tokenSizes.habitsOf(reserved.chain))
  let response: MaybePromise<VendorResponse>
  try {
    response =
      context.hooks === undefined ? ask(context, reserved, completion) : askHooked(context, reserved, completion)
  } catch (cause) {
    response = failedResponse(cause)
  }
  return isPending(response)
    ? response.then(
        (answered) => end(context, reserved, completion, answered),
        (cause) => end(context, reserved, completion, failedResponse(cause)),
      )
    : end(context, reserved, completion, response)
}

async function replay(
  context: PipelineContext,
  admitted: Admitted,
  completion: Completion,
  kept: StoredAnswer,
): Promise<undefined> {
  await release(context, admitted, 0)
  if (completion.replay === undefined) respondReplay(admitted.sink, kept, admitted.requestId)
  else await completion.replay(context, admitted, kept)
}

const nothing = (): undefined => undefined

function ask(context: PipelineContext, reserved: Reserved, completion: Completion): MaybePromise<VendorResponse> {
  const routed = route(context, reserved)
  return completion.ask === undefined ? dispatch(context, routed) : completion.ask(context, routed)
}

async function askHooked(
  context: PipelineContext,
  reserved: Reserved,
  completion: Completion,
): Promise<VendorResponse> {
  try {
    return await runAnswerHooks(context, reserved, await ask(context, reserved, completion))
  } catch (cause) {
    reserved.calls.abort()
    return failedResponse(cause)
  }
}

function end(
  context: PipelineContext,
  reserved: Reserved,
  completion: Completion,
  response: VendorResponse,
): Unfinished | undefined {
  const ending = completion.end(context, reserved, response)
  return isPending(ending) ? { end: ending } : undefined
}
