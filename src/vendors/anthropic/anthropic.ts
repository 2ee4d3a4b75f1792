import { keyPool } from '../shared/key-pool.ts'
import { type ResourceAddress, resourceAddress, type VendorAddress, vendorAddress } from '../shared/vendor-address.ts'
import { vendorConnection } from '../shared/vendor-connection.ts'
import type { ApiKeys, ConnectionOptions, UnlistedModelOptions, Vendor } from '../vendor.ts'
import { chatDecoder } from './chat-decoder.ts'
import { chatFromWire } from './chat-from-wire.ts'
import { chatToWire, type MessagesAddress, SURCHARGES_LEFT_OUT } from './chat-to-wire.ts'
import { errorFrom } from './error-from.ts'
import { anthropicMedia } from './media-tokens.ts'
import { messagesOperation } from './messages-operation.ts'
import { modelAbilities } from './model-abilities.ts'
import { ownsReasoning, thinksUnseen } from './reasoning.ts'

/** Options of {@link anthropic}. */
export interface AnthropicOptions extends UnlistedModelOptions, ConnectionOptions {
  /** One key or several; without one the vendor is not configured. */
  readonly apiKey?: ApiKeys
  /** Origin of the API, with a path prefix if need be; a trailing `/v1` is accepted. Default `https://api.anthropic.com`. */
  readonly baseURL?: string | undefined
  /** Value of the `anthropic-version` header, where the caller sends none. Default `2023-06-01`. */
  readonly version?: string | undefined
}

/** Options of {@link anthropicFoundry}. */
export interface AnthropicFoundryOptions extends ResourceAddress, UnlistedModelOptions, ConnectionOptions {
  /** Id of the vendor, where there are several resources; `anthropic-foundry` by default. */
  readonly id?: string | undefined
  readonly displayName?: string | undefined
  /** One key or several; without one the vendor is not configured. */
  readonly apiKey?: ApiKeys
  /** Name of the resource: `my-resource` of `https://my-resource.services.ai.azure.com`. */
  readonly resource?: string | undefined
  /** Instead of `resource`: its address, with or without `/anthropic/v1/messages`. */
  readonly endpoint?: string | undefined
  /** Value of the `anthropic-version` header, where the caller sends none. Default `2023-06-01`. */
  readonly version?: string | undefined
}

/**
 * Anthropic: its Messages API, passed through for Messages callers and translated for chat.
 * @throws TypeError when `baseURL` is not an http(s) URL.
 */
export function anthropic(options: AnthropicOptions = {}): Vendor {
  const address = vendorAddress(options.baseURL ?? 'https://api.anthropic.com', '/v1')
  return messagesVendor(options, address, {
    id: 'anthropic',
    displayName: 'Anthropic',
    configuredBy: 'ANTHROPIC_API_KEY or anthropic({ apiKey })',
  })
}

/**
 * Claude in Microsoft Foundry: the same API at a resource of the operator's. `upstream` of a model is the name of its
 * deployment, which should be the model's own id: abilities are known by it.
 * @throws TypeError when neither or both of `resource` and `endpoint` are given, or one cannot be used.
 */
export function anthropicFoundry(options: AnthropicFoundryOptions): Vendor {
  const given = resourceAddress('anthropicFoundry', options, 'services.ai.azure.com')
  const { origin, prefix } = vendorAddress(given)
  const address = { origin, prefix: prefix.replace(/(?:\/anthropic)?(?:\/v1(?:\/messages)?)?$/, '/anthropic') }
  return messagesVendor(options, address, {
    id: options.id ?? 'anthropic-foundry',
    displayName: options.displayName ?? 'Claude in Foundry',
    configuredBy: 'ANTHROPIC_FOUNDRY_API_KEY or anthropicFoundry({ apiKey })',
  })
}

/** The vendor at an address; the names are for people. */
function messagesVendor(
  options: Omit<AnthropicOptions, 'baseURL'>,
  { origin, prefix }: VendorAddress,
  names: Pick<Vendor, 'id' | 'displayName' | 'configuredBy'>,
): Vendor {
  const pool = keyPool(options.apiKey)
  const { apiKeys } = pool
  const address: MessagesAddress = { path: `${prefix}/v1/messages`, version: options.version ?? '2023-06-01' }
  return {
    ...names,
    origin,
    ...vendorConnection(options),
    ...pool,
    models: [],
    catalogId: 'anthropic',
    passUnknownModels: options.passUnknownModels ?? false,
    chat: {
      toWire: (call) => chatToWire(call, address),
      leavesOut: SURCHARGES_LEFT_OUT,
      fromWire: chatFromWire,
      decoder: (call, writer) => chatDecoder(call, writer, apiKeys),
      reasonsUnseen: ({ model, request }) => thinksUnseen(modelAbilities(model.upstream), request.reasoning_effort),
    },
    messages: messagesOperation(address, apiKeys),
    media: anthropicMedia,
    ownsReasoning,
    errorFrom: (answer, nowMs) => errorFrom(answer, nowMs, apiKeys),
  }
}
