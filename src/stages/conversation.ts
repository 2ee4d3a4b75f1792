import { GatewayError } from '../core/errors.ts'
import { type MaybePromise, settled } from '../core/maybe-promise.ts'
import type { Tier } from '../stores/principal.ts'
import type { AnsweredInteraction } from '../vendors/vendor.ts'
import type { Candidate, Parsed, Reserved } from './records.ts'
import { reportFault, type StageContext } from './stage-context.ts'

const DAY_MS = 24 * 60 * 60_000

/** How long a stored conversation can be continued (API specification, "States and transitions"). */
export const CONVERSATION_RETENTION_MS: Readonly<Record<Tier, number>> = { paid: 55 * DAY_MS, free: DAY_MS }

/**
 * Finds the answer that a request continues. Only its owner's requests find it: foreign, unknown and expired ids read alike.
 * @throws GatewayError `interaction_not_found`, or `store_unavailable` when ownership cannot be checked.
 */
export function resumeConversation(context: StageContext, parsed: Parsed): MaybePromise<Parsed> {
  const wish = parsed.endpoint.conversation?.(parsed.body)
  if (wish === undefined) return parsed
  const { previousId, isStored } = wish
  const freshId = context.ids.next('v1')
  const nowMs = context.clock.now()
  if (previousId === undefined)
    return Object.assign(parsed, { conversation: { previous: undefined, isStored, freshId } })
  const { accountId } = parsed.principal
  return settled(
    () => context.store.interactions.find(accountId, previousId, nowMs),
    (previous) => {
      if (previous === undefined) throw new GatewayError('interaction_not_found', { param: 'previous_interaction_id' })
      return Object.assign(parsed, { conversation: { previous, isStored, freshId } })
    },
    (cause) => {
      throw new GatewayError('store_unavailable', { cause })
    },
  )
}

/**
 * Notes whose an answer is, so that its owner can continue it, before the owner gets to know its id. Never fails: an answer
 * is not withheld because a store is down; the host gets an `internal-error` event, and the answer cannot be continued.
 */
export function rememberInteraction(
  context: StageContext,
  reserved: Reserved,
  candidate: Candidate,
  interaction: AnsweredInteraction,
): MaybePromise<void> {
  if (reserved.conversation?.isStored !== true) return
  const nowMs = context.clock.now()
  const { accountId, tier } = reserved.principal
  return settled(
    () =>
      context.store.interactions.save({
        id: interaction.id,
        accountId,
        vendor: candidate.vendor.id,
        vendorKey: candidate.account,
        upstreamId: interaction.upstreamId,
        model: candidate.model.id,
        createdAtMs: nowMs,
        expiresAtMs: nowMs + CONVERSATION_RETENTION_MS[tier],
      }),
    () => undefined,
    (error) => reportFault(context, reserved.requestId, 'interactions', error),
  )
}

/** May this candidate continue the conversation? Only the vendor key that began it has its history. */
export function canContinue(reserved: Reserved, candidate: Candidate): boolean {
  const previous = reserved.conversation?.previous
  return previous === undefined || previous.vendorKey === candidate.account
}
