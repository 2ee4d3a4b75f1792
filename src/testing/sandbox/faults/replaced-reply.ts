import { credentialOf, type SandboxCall } from '../sandbox-call.ts'
import type { SandboxReply, VendorErrors } from '../sandbox-operation.ts'
import { type Fault, faultOf } from './fault.ts'

/** The answer that a fault puts in the place of the vendor's own; undefined when none does. */
export function replacedReply(
  faults: readonly Fault[],
  call: SandboxCall,
  errors: VendorErrors,
): SandboxReply | undefined {
  for (const fault of faults) {
    switch (fault.kind) {
      case 'unreadable':
        return errors.status(400, `The stand-in cannot read the fault mark ${fault.mark}.`)
      case 'status':
        return errors.status(fault.status, undefined, fault.retryAfterSeconds)
      case 'quota':
        return errors.quota()
      case 'bad-key':
        return errors.badKey()
      case 'leak-key':
        return errors.status(401, `The key ${credentialOf(call)} is not valid (sent as Bearer ${credentialOf(call)}).`)
      case 'html':
        return page(fault.status)
      case 'redirect':
        return redirect(fault.location ?? 'https://elsewhere.example/')
    }
  }
  return undefined
}

/** What a fault makes of the vendor's own answer before it is sent. */
export function damagedReply(reply: SandboxReply, faults: readonly Fault[], errors: VendorErrors): SandboxReply {
  if (reply.status !== 200) return reply
  if (faultOf(faults, 'empty') !== undefined) return { ...reply, pieces: [], streamed: false }
  if (faultOf(faults, 'garbage') !== undefined) {
    const noise = '\u0001\u0002}{ this is no JSON ][\u0000'
    return { ...reply, pieces: reply.streamed ? [`data: ${noise}\n\n`, `data: ${noise}\n\n`] : [noise] }
  }
  const errorEvent = faultOf(faults, 'error-event')
  if (errorEvent !== undefined) {
    if (!reply.streamed) return { ...reply, pieces: errors.status(500).pieces }
    return { ...reply, pieces: [...reply.pieces.slice(0, errorEvent.events ?? 1), errors.streamEvent()] }
  }
  if (faultOf(faults, 'no-done') !== undefined && reply.streamed) return { ...reply, pieces: reply.pieces.slice(0, -1) }
  return reply
}

function page(status: number): SandboxReply {
  const body = `<html>\r\n<head><title>${status}</title></head>\r\n<body><h1>${status}</h1><hr>proxy</body>\r\n</html>\r\n`
  return { status, headers: ['content-type', 'text/html'], pieces: [body], streamed: false }
}

function redirect(location: string): SandboxReply {
  return { status: 307, headers: ['location', location], pieces: [''], streamed: false }
}
