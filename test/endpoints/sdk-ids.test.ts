import { expect, test } from 'vitest'
import { VENDOR_OBJECT_MEMBERS } from '../../src/endpoints/vendor-objects.ts'
import { SDK_REQUESTS, type SdkMember, type SdkRequestFile, sdkRequestMembers } from '../support/sdk-request-members.ts'

/** Members with an id that opens nothing at a vendor, with the reason. */
const HARMLESS: Readonly<Record<string, string>> = {
  call_id: 'pairs a call with its output inside the request',
  caller_id: 'names a call inside the request',
  tool_call_id: 'pairs a call with its output inside the request',
  tool_use_id: 'pairs a call with its output inside the request',
  tool_id: 'names a call inside the request',
  tab_id: 'names a tab of the browser of the caller',
  download_id: 'names a download of the browser of the caller',
  user_id: 'names an end user of the caller',
  'tool_calls.id': 'pairs a call with its output inside the request',
  'content.id': 'pairs a call with its output inside the request',
  'pending_safety_checks.id': 'repeats a check that the request contains',
  'acknowledged_safety_checks.id': 'repeats a check that the request contains',
}

/** Members whose owner is not checked yet. Clients continue threads by default, so an id cannot be rejected before owners are stored. */
const UNCHECKED = new Set(['thread.previous_message_id'])

/** Members whose ids are looked up before a request is sent: items, approvals of items, and the answer that is continued. */
const LOOKED_UP = new Set(['input.id', 'items.id', 'approval_request_id', 'previous_response_id'])

function isKnown({ path, name, ownerTypes }: SdkMember): boolean {
  const parent = path.replaceAll('[]', '').replaceAll('{}', '').split('.').at(-2) ?? ''
  const keys = [name, `${parent}.${name}`, ...ownerTypes.map((type) => `${type}.${name}`)]
  return keys.some(
    (key) =>
      Object.hasOwn(VENDOR_OBJECT_MEMBERS, key) ||
      Object.hasOwn(HARMLESS, key) ||
      LOOKED_UP.has(key) ||
      UNCHECKED.has(key),
  )
}

test.each(Object.keys(SDK_REQUESTS) as SdkRequestFile[])(
  'knows each id in the requests of %s',
  (file) => {
    const members = sdkRequestMembers(file)
    expect(members.length).toBeGreaterThan(3)
    const unknown = members.filter((member) => /(?:^|_)ids?$/.test(member.name) && !isKnown(member))
    expect(unknown.map(({ path, owner }) => `${owner}: ${path}`)).toEqual([])
  },
  240_000,
)
