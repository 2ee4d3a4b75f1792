/** Makes a value when it is first asked for, and gives the same one from then on. */
export function onDemand<Value extends object>(make: () => Value): () => Value {
  let made: Value | undefined
  return () => {
    made ??= make()
    return made
  }
}
