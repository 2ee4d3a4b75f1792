import { isPending } from '../core/maybe-promise.ts'
import type { AnswerCall } from '../hooks/answer-stage.ts'
import type { CheckedDenial } from '../hooks/denial.ts'
import type { AnswerResult } from '../hooks/hook.ts'
import type { CompiledHook } from '../hooks/hook-table.ts'
import { StreamDenial } from '../hooks/text-events.ts'
import { ANSWER_RESULT, checkedResult, checkedTexts, denied, hookFailed } from './hook-facts.ts'
import { checkedHeaders } from './hook-headers.ts'
import { denialOf } from './request-hooks.ts'
import { type AnswerScreen, callAnswer, callWindow } from './shown-answer.ts'
import type { OpenStream } from './vendor-response.ts'

/** Returns the functions of a streamed call that the stages of the stream need. */
export function answerCallOf(screen: AnswerScreen, inner: OpenStream): AnswerCall {
  const { context, reserved, candidate } = screen
  const model = candidate.model.id
  const failedFor = (point: 'text' | 'answer'): AnswerCall['failed'] => {
    const told = new Set<string>()
    return (hook, fault, error) => {
      // Emits one event per hook and stream, however many windows the hook fails on.
      if (hook.isOpen && told.has(hook.name)) return undefined
      told.add(hook.name)
      const failure = hookFailed(context, reserved, model, { hook, point, fault, error })
      return failure && { error: failure, isRefusal: false, fault: undefined }
    }
  }
  const failed = failedFor('text')
  const answerFailed = failedFor('answer')
  const deny = (hook: CompiledHook, point: 'text' | 'answer', denial: unknown): CheckedDenial =>
    denied(context, reserved, model, { hook, point, denial })
  return {
    check: (hook, window) => callWindow(screen, hook, window),
    denied: (hook, denial) => deny(hook, 'text', denial),
    failed: (hook, fault, error) => (hook.hook.text === undefined ? answerFailed : failed)(hook, fault, error),
    answer(hook, parts) {
      const called = callAnswer({ ...screen, usage: inner.transform.usage }, hook, { body: undefined, parts })
      const read = (outcome: Awaited<typeof called>): ReadonlyMap<string, string> | StreamDenial | undefined => {
        if (outcome.kind === 'result') {
          const denial = denialOf(outcome.result)
          if (denial !== undefined) return new StreamDenial(hook, deny(hook, 'answer', denial.deny), false)
        }
        try {
          if (outcome.kind === 'fault') return failing(hook, outcome.fault, outcome.error)
          const { texts, headers } = checkedResult<AnswerResult>(outcome.result, ANSWER_RESULT) ?? {}
          const added = headers === undefined ? undefined : checkedHeaders(headers)
          const changed = texts === undefined ? undefined : checkedTexts(texts, parts)
          if (added !== undefined) reserved.addHeaders(added)
          return changed
        } catch (error) {
          return failing(hook, 'unusable-result', error)
        }
      }
      return isPending(called) ? called.then(read) : read(called)
    },
  }

  function failing(hook: CompiledHook, ...[fault, error]: [Parameters<AnswerCall['failed']>[1], unknown]) {
    const denial = answerFailed(hook, fault, error)
    return denial && new StreamDenial(hook, denial, true)
  }
}
