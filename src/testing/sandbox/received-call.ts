import { credentialIdOf } from '../../routing/vendor-key.ts'
import { asObject, asText } from './request-fields.ts'
import { credentialOf, type IncomingCall } from './sandbox-operation.ts'

const PATH_MODEL = /\/(?:models?|deployments|endpoints)\/([^/:]+)/
const FORM_MODEL = /name="model"\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]*)\r\n/
const MAX_HEAD_BYTES = 64 * 1024

/** The model that a call names, as the vendor calls it: in its body, its form or its path; undefined when it names none. */
export function modelOf(call: IncomingCall, body: unknown): string | undefined {
  const named = asText(asObject(body)['model'])
  if (named !== '') return named
  const inPath = PATH_MODEL.exec(call.path)?.[1]
  if (inPath !== undefined) return decodedOrAsIs(inPath)
  if (!(call.headers['content-type'] ?? '').startsWith('multipart/form-data')) return undefined
  const inForm = FORM_MODEL.exec(Buffer.from(call.bytes.subarray(0, MAX_HEAD_BYTES)).toString('latin1'))?.[1]
  return inForm ?? FORM_MODEL.exec(Buffer.from(call.bytes).toString('latin1'))?.[1]
}

// Where the stand-in's name is not the id that the gateway gives the vendor.
const GATEWAY_IDS: Readonly<Record<string, string>> = { azure: 'azure-openai' }
const WITH_KEYS = new Set(['openai', 'anthropic', 'gemini', 'dashscope', 'voyage', 'cohere', 'azure', 'presets'])

/**
 * The id by which a gateway's events name the key of a call; undefined without a key, and for clouds, whose credentials are tokens and
 * signatures that change. For a vendor with an id of your own it differs.
 */
export function credentialIdFor(vendor: string, call: IncomingCall): string | undefined {
  const key = credentialOf(call)
  if (key === '' || !WITH_KEYS.has(vendor)) return undefined
  const preset = /^\/presets\/([^/]+)\//.exec(call.path)?.[1]
  return credentialIdOf(preset ?? GATEWAY_IDS[vendor] ?? vendor, key)
}

function decodedOrAsIs(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
