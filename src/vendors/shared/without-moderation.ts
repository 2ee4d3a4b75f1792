import { INLINE_MODERATION, refuseLostBlocking } from '../../endpoints/inline-moderation.ts'

/** A request that a vendor gets which does not moderate. */
export interface UnmoderatedRequest<Request> {
  /** The same object unless the caller requests moderation. */
  readonly request: Request
  /** The dropped field, if it requests scores. */
  readonly dropped: readonly string[]
}

const NOTHING: readonly string[] = []
const DROPPED: readonly string[] = [INLINE_MODERATION]

/**
 * Leaves the field `moderation` out, which servers of the dialect other than OpenAI's own would ignore.
 * @throws GatewayError `unsupported_parameter` for a request that wants to be blocked.
 */
export function withoutModeration<Request extends Readonly<Record<string, unknown>>>(
  request: Request,
): UnmoderatedRequest<Request> {
  const { [INLINE_MODERATION]: moderation, ...rest } = request
  if (moderation === undefined) return { request, dropped: NOTHING }
  refuseLostBlocking(moderation)
  return { request: rest as unknown as Request, dropped: moderation === null ? NOTHING : DROPPED }
}
