import type { Clock, Timer } from '../../../core/clock.ts'
import type { DeliveryStep } from './delivery-steps.ts'
import type { VendorConnection } from './vendor-connection.ts'

/**
 * Carries out the steps on a connection, waiting where they wait and where the connection is full.
 * @returns A function that stops it and its timer, for when the caller leaves.
 */
export function playSteps(
  steps: Iterator<DeliveryStep, void, undefined>,
  connection: VendorConnection,
  clock: Clock,
): () => void {
  let timer: Timer | undefined
  let stopped = false

  const play = (): void => {
    while (!stopped && !connection.closed) {
      const { value: step } = steps.next()
      if (!step || !carryOut(step)) return
    }
  }

  /** True when the next step may follow at once. */
  const carryOut = (step: DeliveryStep): boolean => {
    switch (step.kind) {
      case 'head':
        connection.head(step.status, step.headers)
        return true
      case 'bytes':
        return connection.write(step.bytes)
      case 'wait':
        timer = clock.schedule(step.delayMs, play)
        return false
      case 'hang':
        return false
      case 'end':
      case 'reset':
      case 'refuse':
        connection[step.kind]()
        return false
    }
  }

  connection.onDrain(play)
  play()
  return () => {
    stopped = true
    timer?.cancel()
  }
}
