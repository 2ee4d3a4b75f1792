import type { CatalogModel } from '../../catalog/model.ts'
import { GatewayError } from '../../core/errors.ts'
import { type Operation, type PassThroughOperation, passThrough, type VendorCall } from '../operation.ts'
import type { CompletionRequest } from './completion-request.ts'

/** Text completions at a vendor. */
export interface CompletionsOperation extends PassThroughOperation<CompletionRequest> {
  /** Returns whether a model completes texts. */
  serves(model: CatalogModel): boolean
  /** Longest completion that the vendor makes, in tokens. If omitted, it is that of the model. */
  readonly maxTokens?: number | undefined
}

/** Part of a vendor that completes texts: servers of OpenAI's dialect. */
export interface CompletionsOffer {
  readonly completions?: CompletionsOperation
}

/**
 * Creates the operation of a text completion.
 * @throws GatewayError `endpoint_model_mismatch` if the model does not complete texts.
 */
export function createCompletionOperation(
  { completions }: CompletionsOffer,
  call: VendorCall<CompletionRequest>,
): Operation {
  if (completions?.serves(call.model) === true) return passThrough(completions.toWire(call), completions, call)
  throw new GatewayError('endpoint_model_mismatch', {
    message: `The model ${JSON.stringify(call.publicModel)} does not complete texts. Use a chat endpoint, such as POST /v1/chat/completions.`,
    param: 'model',
  })
}
