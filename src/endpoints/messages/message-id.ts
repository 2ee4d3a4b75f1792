const FOREIGN_CHARACTERS = /[^\w-]/g

/** The id of a message, made from the vendor's own. Where the vendor gives none, it is made from the time. */
export function messageId(vendorId: string, nowMs: number): string {
  const id = vendorId.replace(FOREIGN_CHARACTERS, '').slice(0, 100) || nowMs.toString(36)
  return id.startsWith('msg_') ? id : `msg_${id}`
}
