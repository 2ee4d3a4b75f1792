import type { AnswerResult, Hook, HookAnswer } from './hook.ts'

/**
 * Key for the retry of an answer in hooks of this package. Hooks of hosts cannot retry, because the caller pays for each call. A
 * host cannot define a symbol member by accident, and a copy of the hook has it too.
 */
export const SECOND_TRY: unique symbol = Symbol('signalbox second try')

/** Hook that may retry a whole answer once. Money for two calls is reserved if it applies. */
export interface SecondTryHook extends Hook {
  readonly [SECOND_TRY]: true
}

/** Answer in the view of such a hook. */
export interface SecondTryAnswer extends HookAnswer {
  /** Whether it is the second answer, after which there is no other. */
  readonly [SECOND_TRY]?: boolean
}

/** Prompt of the retry, and the text of the rejected answer that it refers to. */
export interface SecondTry {
  readonly answer: string
  /** Reply of at most {@link MAX_REPLY_CHARACTERS} characters. */
  readonly reply: string
}

/** Result for an answer that is not retried. */
export interface SecondTryResult extends AnswerResult {
  readonly [SECOND_TRY]?: SecondTry
}

/** Maximum length of a reply in characters. */
export const MAX_REPLY_CHARACTERS = 1_000
