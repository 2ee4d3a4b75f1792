/** Milliseconds of processor time that this work takes; other processes do not count, however busy the machine. */
export function processorMs(work: () => void): number {
  const began = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(began)
  return (user + system) / 1000
}
