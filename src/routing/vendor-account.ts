import { createHash } from 'node:crypto'

/** Names one of the operator's keys at a vendor without telling the key: the vendor's id and 16 hexadecimal digits. */
export function vendorAccount(vendorId: string, apiKey: string): string {
  return `${vendorId}:${createHash('sha256').update(apiKey).digest('hex').slice(0, 16)}`
}
