import type { Reserved } from './call-record.ts'
import { emitTo, type PipelineContext } from './pipeline-context.ts'

/** Emits `request-started`, once. */
export function announce(context: PipelineContext, reserved: Reserved): void {
  if (context.onEvent === undefined || reserved.isAnnounced) return
  reserved.announced()
  // Observers are notified separately.
  emitTo(context.onEvent, context.logger, {
    type: 'request-started',
    requestId: reserved.requestId,
    endpoint: reserved.endpoint.id,
    accountId: reserved.principal.accountId,
    keyId: reserved.principal.keyId,
    model: reserved.chain[0]?.id ?? reserved.body.model,
  })
}
