import { OPENAI_ERRORS } from './openai/openai-errors.ts'
import { jsonReply, type SandboxOperation } from './sandbox-operation.ts'

/** A receiver of the gateway's own webhooks: `POST` to any path below `/webhooks`. */
export const WEBHOOK_RECEIVER: SandboxOperation = {
  vendor: 'receiver',
  operation: 'webhook',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && /^\/webhooks(?:\/|$)/.test(path),
  promptText: () => '',
  answer: () => jsonReply(200, [], {}),
}
