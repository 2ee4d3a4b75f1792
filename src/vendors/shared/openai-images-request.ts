import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { ImageEditRequest } from '../../endpoints/image-edits/image-edit-request.ts'
import type { PictureOptions } from '../../endpoints/images/openai/openai-image-request.ts'
import { encodeForm } from '../../wire/encode-form.ts'
import type { Form, FormPart } from '../../wire/multipart.ts'
import type { VendorCall, WireRequest } from '../vendor.ts'
import { bearerHeaders } from './bearer-headers.ts'
import { asBuffer } from './json-bytes.ts'
import { type PictureFields, pictureFields } from './openai-images-fields.ts'
import { editMembers } from './openai-images-member-edits.ts'

/**
 * Writes a request in JSON: the caller's bytes with the model id, and what the model does not take, changed. It is written
 * again only where members stand twice or under escaped names.
 */
export function picturesToWire(call: VendorCall<PictureOptions>, path: string): WireRequest {
  const { changes, dropped } = pictureFields(call.request, call.model)
  const json = new Map([...changes].map(([name, value]) => [name, jsonText(value)]))
  return {
    path,
    headers: bearerHeaders(call.apiKey, accepted(call)),
    body: (call.bytes && editMembers(call.bytes, json)) ?? rewritten(call, changes),
    dropped,
  }
}

/** Writes an edit: a form again as a form, with its parts in order, under their names and types; JSON as JSON. */
export function editToWire(call: VendorCall<ImageEditRequest>, path: string): WireRequest {
  const { form } = call.request
  if (form === undefined) return picturesToWire(call, path)
  const fields = pictureFields(call.request, call.model)
  const { contentType, chunks } = encodeForm(changedForm(form, fields))
  const [, , ...headers] = bearerHeaders(call.apiKey, accepted(call))
  return { path, headers: ['content-type', contentType, ...headers], body: chunks, dropped: fields.dropped }
}

function changedForm(form: Form, { changes }: PictureFields): Form {
  const parts = form.flatMap((part): FormPart[] => {
    if (part.kind === 'file' || !changes.has(part.name)) return [part]
    const value = changes.get(part.name)
    return value === undefined ? [] : [{ ...part, value }]
  })
  for (const [name, value] of changes) {
    if (value !== undefined && !form.some((part) => part.name === name)) parts.push({ kind: 'field', name, value })
  }
  return parts
}

function accepted(call: VendorCall<unknown>): 'text/event-stream' | 'application/json' {
  return call.stream ? 'text/event-stream' : 'application/json'
}

function jsonText(value: string | undefined): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value)
}

function rewritten(call: VendorCall<PictureOptions>, changes: PictureFields['changes']): string {
  const parsed = call.bytes === undefined ? undefined : parseVendorJson(asBuffer(call.bytes).toString('utf8'))
  const body: Record<string, unknown> = { ...(isJsonObject(parsed) ? parsed : call.request) }
  for (const [name, value] of changes) {
    if (value === undefined) delete body[name]
    else body[name] = value
  }
  return JSON.stringify(body)
}
