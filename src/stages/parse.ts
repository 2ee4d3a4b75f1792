import { createHash } from 'node:crypto'
import type { CatalogModel } from '../catalog/model.ts'
import { GatewayError } from '../core/errors.ts'
import type { BodyFailure, GatewayRequest } from '../core/exchange.ts'
import { parseCallerJson } from '../core/json.ts'
import { IDEMPOTENCY_RETENTION_MS, type IdempotencyClaim } from '../stores/idempotency-store.ts'
import { mediaType } from '../wire/headers.ts'
import type { Authenticated, Parsed } from './records.ts'
import type { StageContext } from './stage-context.ts'

/**
 * Reads the body.
 * @throws GatewayError `unsupported_media_type` before anything is read; `body_too_large`, `body_consumed` or
 *   `client_closed_request` when there is no body to be had.
 */
export function receiveBody(context: StageContext, { request }: Authenticated): Promise<Uint8Array> {
  if (mediaType(request.header('content-type')) !== 'application/json') {
    throw new GatewayError('unsupported_media_type', { message: 'Send the body as Content-Type: application/json.' })
  }
  return readBody(request, context.bodyLimitBytes)
}

/**
 * Checks the body and finds the model.
 * @throws GatewayError for a body that cannot be used (`invalid_json`, `json_too_deep`, `invalid_request`), an unknown
 *   model, a model of another endpoint, or a vendor that is not configured.
 */
export function parse(context: StageContext, authenticated: Authenticated, bytes: Uint8Array): Parsed {
  const { endpoint, request, principal } = authenticated
  const body = endpoint.parse(parseCallerJson(bytes))
  return Object.assign(authenticated, {
    body,
    bytes,
    isStream: endpoint.isStream(body),
    chain: modelChain(context, authenticated, body.model),
    billingFields: endpoint.billingFields(body),
    claim: claimOf(context, request, principal.accountId, bytes),
  })
}

/** Reads a request's body as one piece. */
function readBody(request: GatewayRequest, limitBytes: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    request.readBody(limitBytes, (failure, chunks) => {
      if (failure !== undefined) reject(bodyError(failure, limitBytes))
      else resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks))
    })
  })
}

function bodyError(failure: BodyFailure, limitBytes: number): GatewayError {
  if (failure === 'too_large') {
    return new GatewayError('body_too_large', { message: `The request body is larger than ${limitBytes} bytes.` })
  }
  return new GatewayError(failure === 'consumed' ? 'body_consumed' : 'client_closed_request')
}

/** The model asked for and its fallbacks, without those that nobody can serve here. */
function modelChain(context: StageContext, authenticated: Authenticated, modelId: string): CatalogModel[] {
  const { endpoint, principal } = authenticated
  const model = context.catalog.find(modelId)
  if (model === undefined) {
    throw new GatewayError('model_not_found', {
      message: `There is no model ${JSON.stringify(modelId)}.`,
      param: 'model',
    })
  }
  if (!model.kinds.includes(endpoint.kind)) {
    throw new GatewayError('endpoint_model_mismatch', {
      message: `The model ${JSON.stringify(modelId)} cannot be used on ${endpoint.path}.`,
      param: 'model',
    })
  }
  const allowed = principal.scopes?.models
  if (allowed !== undefined && !allowed.includes(model.id)) {
    throw new GatewayError('permission_denied', {
      message: `This API key may not use the model ${JSON.stringify(modelId)}.`,
      param: 'model',
    })
  }
  const chain = [model]
  for (const id of model.fallbacks) {
    const fallback = context.catalog.find(id)
    if (fallback?.kinds.includes(endpoint.kind) && (allowed === undefined || allowed.includes(fallback.id)))
      chain.push(fallback)
  }
  const usable = chain.filter((row) => (context.vendors.get(row.vendor)?.apiKeys.length ?? 0) > 0)
  if (usable.length === 0) throw notConfigured(context, model)
  return usable
}

function notConfigured(context: StageContext, model: CatalogModel): GatewayError {
  const vendor = context.vendors.get(model.vendor)
  const remedy =
    vendor === undefined
      ? `add the vendor ${JSON.stringify(model.vendor)} to the gateway`
      : `set ${vendor.configuredBy}`
  return new GatewayError('model_not_configured', {
    message: `The model ${JSON.stringify(model.id)} is not available here: to use it, ${remedy}.`,
    param: 'model',
  })
}

const MAX_IDEMPOTENCY_KEY_LENGTH = 255

function claimOf(
  context: StageContext,
  request: GatewayRequest,
  accountId: string,
  bytes: Uint8Array,
): IdempotencyClaim | undefined {
  const key = request.header('idempotency-key')
  if (key === undefined) return undefined
  if (key === '' || key.length > MAX_IDEMPOTENCY_KEY_LENGTH) {
    throw new GatewayError('invalid_request', {
      message: `Idempotency-Key: must have 1 to ${MAX_IDEMPOTENCY_KEY_LENGTH} characters`,
      param: 'Idempotency-Key',
    })
  }
  const fingerprint = createHash('sha256').update(`${request.method} ${request.path}\n`).update(bytes).digest('hex')
  return { accountId, key, fingerprint, expiresAtMs: context.clock.now() + IDEMPOTENCY_RETENTION_MS }
}
