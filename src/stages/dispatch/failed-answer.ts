import { GatewayError } from '../../core/errors.ts'
import type { FailedAnswer } from '../records.ts'

/** Whatever is thrown between the hold and its end becomes a failed answer, so that the hold ends all the same. */
export function failedAnswer(cause: unknown): FailedAnswer {
  const error = GatewayError.from(cause)
  const ending = { kind: 'failed', usage: undefined, estimatedUsage: undefined, error } as const
  return { kind: 'failed', error, candidate: undefined, mayHaveBegun: false, ending }
}
