void USED();

int main() {
  USED();
}
