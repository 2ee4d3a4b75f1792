import type { CatalogModel } from '../catalog/model.ts'
import type { Credential } from '../core/credential.ts'
import { textOfError } from '../core/errors.ts'
import { parseVendorJson } from '../core/json.ts'
import { BufferedCall } from '../pipeline/buffered-call.ts'
import { headersAt, pathAt, withCredential } from '../pipeline/vendor-address.ts'
import type { Transport, TransportFailure } from '../transport/transport.ts'
import type { Vendor, WireAnswer } from '../vendors/vendor.ts'
import { asBuffer, joinChunks } from '../wire/join-chunks.ts'
import { type Check, variablesOf } from './check-report.ts'

/** Timeout of one answer, and of one credential, in milliseconds. */
const WAIT_MS = 10_000

/**
 * Requests a vendor's list of models, once with each of its keys, free of charge. A public list does not verify a key, so the list is
 * also requested without one.
 */
export async function checkVendor(vendor: Vendor, transport: Transport): Promise<readonly Check[]> {
  const { apiKeys, credentialProviders = [] } = vendor
  const named = (index: number): string =>
    apiKeys.length > 1 ? `vendor ${vendor.id}, key ${index + 1} of ${apiKeys.length}` : `vendor ${vendor.id}`
  return Promise.all(
    apiKeys.map(async (apiKey, index): Promise<Check> => {
      const provider = credentialProviders[index]
      const name = named(index)
      let credential: Credential | undefined
      if (provider !== undefined) {
        try {
          credential = await provider({ signal: AbortSignal.timeout(WAIT_MS), nowMs: Date.now() })
        } catch (error) {
          const message = `no credential: ${textOfError(error)}`
          return { name, status: 'failed', message, remedy: `set ${variablesOf(vendor.configuredBy)}` }
        }
      }
      return { name, ...(await checkKey(vendor, transport, apiKey, credential)) }
    }),
  )
}

type Finding = Omit<Check, 'name'>

async function checkKey(
  vendor: Vendor,
  transport: Transport,
  apiKey: string,
  credential: Credential | undefined,
): Promise<Finding> {
  const path = modelsPath(vendor, apiKey)
  const given = credential === undefined ? '' : 'a credential was given; '
  if (path === undefined)
    return { status: 'unchecked', message: `${given}it has no list of models to ask for, so nothing was tried there` }
  const answer = await ask(vendor, transport, apiKey, credential)
  if ('failure' in answer) return unreachable(vendor, answer.failure)
  const { status } = answer
  if (status === 404 || status === 405)
    return {
      status: 'unchecked',
      message: `${vendor.origin} answers, and has no list of models at ${path} (${status}), so the key was not tried; if calls fail too, its base URL is wrong`,
    }
  // Some vendors report errors with status 200.
  const isRefused = status < 200 || status >= 300 || vendor.errorFrom(answer, Date.now()).kind !== 'invalid_response'
  if (isRefused) return refused(vendor, answer, [apiKey, credential?.token ?? ''])
  if (parseVendorJson(asBuffer(answer.body).toString('utf8')) === undefined)
    return {
      status: 'failed',
      message: `${vendor.origin} answers ${path} with something else than a list of models`,
      remedy: CHECK_ADDRESS,
    }
  if (apiKey === '' && credential === undefined)
    return { status: 'ok', message: `${vendor.origin} answers; it needs no key` }
  const open = await ask(vendor, transport, '', undefined)
  if (!('failure' in open) && open.status >= 200 && open.status < 300)
    return {
      status: 'unchecked',
      message: `${vendor.origin} answers, and everybody may read its list of models, so the key was not tried`,
    }
  return { status: 'ok', message: `${vendor.origin} accepts the ${credential === undefined ? 'key' : 'credential'}` }
}

const CHECK_ADDRESS = 'check its address (base URL)'

/** Request that is never sent: only its address and headers are used. Responses accept no smaller limit. */
const REQUEST = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 16 } as const
const MODEL: CatalogModel = {
  ...{ id: REQUEST.model, upstream: REQUEST.model, vendor: '', kinds: ['chat'], aliases: [], fallbacks: [] },
  ...{ created: 0, displayName: REQUEST.model, limits: {} },
}

/** Endings of vendors' chat paths, and the path of the list of models in their place. */
const ENDINGS: readonly (readonly [ending: RegExp, list: string])[] = [
  [/\/deployments\/[^/]+\/chat\/completions(?=$|\?)/, '/models'],
  [/\/(?:chat\/completions|responses)(?=$|\?)/, '/models'],
  [/\/v1\/messages(?=$|\?)/, '/v1/models'],
  // Below a publisher of a cloud there is no such list.
  [/(?<!\/publishers\/[^/]+)\/models\/[^/]+:generateContent(?=$|\?)/, '/models'],
]

function chatWire(vendor: Vendor, apiKey: string) {
  return vendor.chat?.toWire({
    request: REQUEST as never,
    bytes: undefined,
    model: { ...MODEL, vendor: vendor.id },
    publicModel: MODEL.id,
    apiKey,
    stream: false,
    nowMs: Date.now(),
  })
}

/** Returns path and query of the list of models, or `undefined` if the vendor has no known one. */
function modelsPath(vendor: Vendor, apiKey: string): string | undefined {
  const path = chatWire(vendor, apiKey)?.path ?? ''
  const found = ENDINGS.find(([ending]) => ending.test(path))
  return found === undefined ? undefined : path.replace(found[0], found[1])
}

async function ask(
  vendor: Vendor,
  transport: Transport,
  apiKey: string,
  credential: Credential | undefined,
): Promise<WireAnswer | { readonly failure: TransportFailure | 'oversize' }> {
  const { headers = [] } = chatWire(vendor, apiKey) ?? {}
  // A GET has no body.
  const own = headers.filter((_, place) => headers[place - (place % 2)]?.toLowerCase() !== 'content-type')
  const call = new BufferedCall((ended) => ended)
  const request = {
    origin: vendor.origin,
    path: pathAt(vendor, modelsPath(vendor, apiKey) ?? '/'),
    method: 'GET' as const,
    headers: headersAt(vendor, own),
    body: null,
    firstByteTimeoutMs: WAIT_MS,
    idleTimeoutMs: WAIT_MS,
    egress: vendor.egress,
  }
  call.begin(transport, withCredential(request, credential, Date.now()))
  const outcome = await call.result
  if ('failure' in outcome) return { failure: outcome.failure }
  if ('oversize' in outcome) return { failure: 'oversize' }
  const { status, headers: received, chunks } = outcome.answer
  return { status, headers: received, body: joinChunks(chunks) }
}

function unreachable({ id, origin }: Vendor, failure: TransportFailure | 'oversize'): Finding {
  if (failure === 'oversize') return { status: 'unchecked', message: `${origin} answers with more than can be read` }
  const { kind, phase, error } = failure
  const reason = kind === 'timeout' ? `no answer (${phase} timeout)` : textOfError(error)
  const remedy =
    kind === 'tls'
      ? `set tls.ca of ${id} in the vendors’ options to the authority of its certificate`
      : `${CHECK_ADDRESS} and the network${kind === 'proxy' ? '; the proxy refuses' : ', HTTPS_PROXY included'}`
  return { status: 'failed', message: `${origin} cannot be reached: ${reason}`, remedy }
}

function refused(vendor: Vendor, answer: WireAnswer, secrets: readonly string[]): Finding {
  const { status } = answer
  const { kind, message, code } = vendor.errorFrom(answer, Date.now())
  const text = secrets
    .filter((secret) => secret.length > 3)
    .reduce(
      (shown, secret) => shown.replaceAll(secret, '[redacted]'),
      `${code === undefined ? '' : `${code}: `}${message}`,
    )
  const isKey = status === 401 || status === 403 || ((status === 400 || status < 300) && kind === 'operator')
  return {
    status: 'failed',
    message: `${vendor.origin} ${isKey ? 'refuses the key' : 'answers with an error'} (${status}${text === '' ? '' : ` ${text.slice(0, 300)}`})`,
    remedy: isKey ? `set ${variablesOf(vendor.configuredBy)} to a key that is valid` : remedyFor(status),
  }
}

function remedyFor(status: number): string {
  if (status === 402) return 'look at the account there: its credit and its limits'
  if (status === 400) return 'check the key, and the address (baseURL)'
  return status >= 300 && status < 400 ? CHECK_ADDRESS : 'try again; look at the vendor’s status page'
}
