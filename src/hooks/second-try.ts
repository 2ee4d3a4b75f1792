import type { AnswerResult, Hook, HookAnswer } from './hook.ts'

/**
 * Marks what a hook of this package has for asking for an answer once more. Hooks of hosts cannot: the caller pays for each call.
 * As a symbol it is no member that a host could name by chance, and a copy of the hook has it too.
 */
export const SECOND_TRY: unique symbol = Symbol('signalbox second try')

/** A hook that may have a whole answer made once more. Money for two calls is held where it applies. */
export interface SecondTryHook extends Hook {
  readonly [SECOND_TRY]: true
}

/** An answer as such a hook sees it. */
export interface SecondTryAnswer extends HookAnswer {
  /** Is it the second one? Then there is no other. */
  readonly [SECOND_TRY]?: boolean
}

/** What is to be asked, and the text of the answer that it replies to. */
export interface SecondTry {
  readonly answer: string
  /** At most {@link MAX_REPLY_CHARACTERS} characters. */
  readonly reply: string
}

/** What becomes of an answer unless another one is made in its place. */
export interface SecondTryResult extends AnswerResult {
  readonly [SECOND_TRY]?: SecondTry
}

/** Longest reply. */
export const MAX_REPLY_CHARACTERS = 1_000
