import { GatewayError } from '../core/errors.ts'
import { isPending } from '../core/maybe-promise.ts'
import { callHook, HookDeadline } from '../hooks/call-hook.ts'
import type { FailureResult, HookFailure } from '../hooks/hook.ts'
import type { Parsed, Received } from './call-record.ts'
import { CallHookFacts, checkedResult, hookFailed } from './hook-facts.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** Request of a known caller, in any stage. */
type KnownRequest = Received & Partial<Parsed>

/** Lets hooks replace message and status of an error of a known caller. Its code stays. Never throws. */
export async function runFailedHooks(
  context: PipelineContext,
  record: KnownRequest,
  error: GatewayError,
): Promise<GatewayError> {
  const endpoint = record.endpoint ?? record.called
  const hooks = context.hooks?.of(endpoint)?.failed
  const { principal } = record
  if (hooks === undefined || principal === undefined) return error
  const model = record.chain?.[0]?.id ?? record.body?.model ?? ''
  const { requestId, request } = record
  const call = { requestId, request, principal, endpoint, body: record.body ?? { model } }
  let current = error
  for (let index = hooks.length - 1; index >= 0; index--) {
    const hook = hooks[index]!
    const deadline = new HookDeadline()
    const failure = new CallFailure(call, model, current, deadline)
    const called = callHook(context.clock, hook.timeoutMs, deadline, () => hook.hook.failed?.(failure))
    const outcome = isPending(called) ? await called : called
    if (outcome.kind === 'fault') {
      current = hookFailed(context, call, model, { hook, point: 'failed', ...outcome }) ?? current
      continue
    }
    try {
      current = replaced(current, checkedResult<FailureResult>(outcome.result, ['message', 'status']))
    } catch (fault) {
      current =
        hookFailed(context, call, model, { hook, point: 'failed', fault: 'unusable-result', error: fault }) ?? current
    }
  }
  return current
}

function replaced(error: GatewayError, result: FailureResult | undefined): GatewayError {
  if (result === undefined) return error
  const { message = error.message, status = error.status } = result
  if (typeof message !== 'string') throw new TypeError('message must be a string')
  if (!(Number.isInteger(status) && status >= 400 && status <= 599))
    throw new TypeError('status must be from 400 to 599')
  return new GatewayError(error.code, { ...error, message, status, cause: error.cause })
}

class CallFailure extends CallHookFacts implements HookFailure {
  readonly code: HookFailure['code']
  readonly status: number
  readonly message: string

  constructor(
    call: ConstructorParameters<typeof CallHookFacts>[0],
    model: string,
    { code, status, message }: GatewayError,
    deadline: HookDeadline,
  ) {
    super(call, model, deadline)
    this.code = code
    this.status = status
    this.message = message
  }
}
