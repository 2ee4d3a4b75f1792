import { GatewayError } from '../core/errors.ts'
import { isJsonObject } from '../core/json.ts'
import { isPending } from '../core/maybe-promise.ts'
import { withTexts } from '../endpoints/texts.ts'
import { callHook, HookDeadline } from '../hooks/call-hook.ts'
import type { HookCall, RequestResult } from '../hooks/hook.ts'
import type { CompiledHook } from '../hooks/hook-table.ts'
import type { Shaped } from './call-record.ts'
import { checkedResult, checkedTexts, denied, hookFailed } from './hook-facts.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { denialOf, RequestCall } from './request-hooks.ts'

/** Caller that stores data for later requests. */
type Keeper = Pick<Shaped, 'requestId' | 'principal' | 'request' | 'endpoint'>
type Kept = { readonly model: string }

/**
 * Runs the request hooks on data that is stored for later requests. They see only the new data. There is no model yet, and nothing to
 * answer or to charge.
 * @returns The data as changed by hooks.
 * @throws GatewayError `request_denied`, also if a hook returns an answer; `hook_failed`; `invalid_request` if a hook charges units.
 */
export async function screenKept<Body extends Kept>(
  context: PipelineContext,
  keeper: Keeper,
  kept: Body,
): Promise<Body> {
  let current = kept
  for (const hook of context.hooks?.of(keeper.endpoint)?.request ?? [])
    current = await screenedBy(context, keeper, hook, current)
  return current
}

async function screenedBy<Body extends Kept>(
  context: PipelineContext,
  { requestId, principal, request, endpoint }: Keeper,
  hook: CompiledHook,
  body: Body,
): Promise<Body> {
  const shown = { requestId, principal, request, endpoint, body, isStream: false, hookUnits: 0 }
  const failed = (fault: 'threw' | 'timeout' | 'unusable-result' | 'too-large', error: unknown): Body => {
    const failure = hookFailed(context, shown, body.model, { hook, point: 'request', fault, error })
    if (failure !== undefined) throw failure
    return body
  }
  const deadline = new HookDeadline()
  const call = new RequestCall(shown, { body, bytes: undefined }, body.model, deadline)
  const called = callHook(context.clock, hook.timeoutMs, deadline, () =>
    hook.hook.request?.(call as unknown as HookCall),
  )
  const outcome = isPending(called) ? await called : called
  const units = call.ended()
  if (outcome.kind === 'fault') return failed(outcome.fault, outcome.error)
  const deny = denialOf(outcome.result)
  if (deny !== undefined) throw denied(context, shown, body.model, { hook, point: 'request', denial: deny.deny }).error
  let changed: Body
  try {
    const result = checkedResult<RequestResult>(outcome.result, ['body', 'texts', 'deny', 'answer'])
    if (result?.answer !== undefined)
      throw denied(context, shown, body.model, { hook, point: 'request', denial: {} }).error
    changed = result === undefined ? body : rewritten(endpoint, body, result)
  } catch (error) {
    if (GatewayError.isInstance(error)) throw error
    return failed('unusable-result', error)
  }
  if (units > 0 && context.prices !== undefined)
    throw new GatewayError('invalid_request', {
      message: 'This cannot be stored before a request, because checking it is charged. Send it with the request.',
    })
  return changed
}

/** @throws TypeError for data that cannot be stored, and SyntaxError for a text that should be JSON and is not. */
function rewritten<Body extends Kept>(
  { texts: reader }: Shaped['endpoint'],
  body: Body,
  { body: other = body, texts }: RequestResult,
): Body {
  if (!isJsonObject(other)) throw new TypeError('body must be an object')
  const base = other as Body
  if (texts === undefined) return base
  const parts = reader?.request(base) ?? []
  return withTexts(base, parts, checkedTexts(texts, parts))
}
